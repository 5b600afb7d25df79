import { z } from 'zod';
import { reasoningDisplays, streamModes, verboseLevels } from '#contracts/display.ts';

/** How blocks of an answer that is still being written are cut. */
const blocks = z
  .strictObject({
    breakAt: z
      .enum(['text_end', 'message_end'])
      .default('text_end')
      .describe(
        'Send blocks while a text is written (text_end), or once its message is complete (message_end).',
      ),
    minChars: z
      .int()
      .min(100)
      .max(4000)
      .default(800)
      .describe('Shortest block, unless the text ends or pauses.'),
    maxChars: z.int().min(200).max(4000).default(1200).describe('Longest block.'),
    idleMs: z
      .int()
      .min(100)
      .max(60_000)
      .default(1000)
      .describe('Pause of the model after which a shorter block is sent, in ms.'),
  })
  .refine(({ minChars, maxChars }) => minChars <= maxChars, {
    path: ['minChars'],
    error: 'is more than maxChars',
  })
  .prefault({});

const displayed = {
  stream: z
    .enum(streamModes)
    .describe(
      'How an answer is shown while it is written: as a preview that becomes the answer, in blocks that stay, or not at all.',
    ),
  verbose: z
    .enum(verboseLevels)
    .describe('Whether tool calls are summarized before the answer; /verbose changes it for a conversation.'),
  reasoning: z
    .enum(reasoningDisplays)
    .describe(
      'Whether the model’s reasoning is shown before the answer (on), or as a message of its own while it thinks (stream); /reasoning changes it for a conversation.',
    ),
};

const ackReaction = z.string().min(1).max(16);

const overrides = {
  stream: displayed.stream.exactOptional(),
  verbose: displayed.verbose.exactOptional(),
  reasoning: displayed.reasoning.exactOptional(),
  ackReaction: ackReaction.exactOptional(),
};

/** The schema of how answers are shown. */
export const replies = z
  .strictObject({
    replyToMode: z
      .enum(['off', 'queued', 'first', 'all'])
      .default('queued')
      .describe('Which messages quote the one they answer; `queued`: the first, if others waited with it.'),
    preview: z
      .boolean()
      .default(true)
      .describe('With `stream: preview`: whether to show a preview, if the network supports it.'),
    stream: displayed.stream.default('preview'),
    verbose: displayed.verbose.default('off'),
    reasoning: displayed.reasoning.default('off'),
    blocks,
    ackReaction: ackReaction
      .exactOptional()
      .describe(
        'Reaction on a message while it is being answered, which the network must allow; absent = none.',
      ),
    ackSuppress: z
      .boolean()
      .default(true)
      .describe('Drop a mere acknowledgement if the agent has already sent the answer itself.'),
    channels: z
      .record(z.string(), z.strictObject(overrides))
      .default({})
      .describe('Overrides of `stream`, `verbose`, `reasoning` and `ackReaction` per channel.'),
  })
  .prefault({});
