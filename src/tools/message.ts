import { z } from 'zod';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { defineTool, type Tool, type ToolRun } from '#contracts/tool.ts';
import type { ToolSendEnd, ToolSender } from '../outbox/tool-sender.ts';
import { judgeWritten } from '../replies/reply-pipeline.ts';
import type { TextShaper } from '../replies/text-shaper.ts';

const inputSchema = z.object({
  text: z.string().min(1).max(32_000).describe('What to say, in Markdown.'),
  to: z
    .string()
    .optional()
    .describe('Session key of another conversation (see sessions_list). Absent: this conversation.'),
});

export type MessageToolDeps = {
  readonly post: ToolSender;
  readonly shaper: TextShaper;
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
  /** Where a message to the lane goes; undefined when nobody has ever written there. */
  routeTo(laneKey: string): Promise<ReplyRoute | undefined>;
};

/**
 * Says something while the run goes on. Its effect is one transaction under the call's own key, so a
 * call that is repeated after a crash re-attaches to the message it made.
 */
export function createMessageTool(deps: MessageToolDeps, run: ToolRun): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name: 'message',
    description:
      'Send a message now, before your final answer: to this conversation, or to another one by its session key. ' +
      'Do not repeat in your answer what you sent with it; answer NO_REPLY if nothing is left to say.',
    inputSchema,
    parallelSafe: false,
    replay: 'durable',
    authority: 'guest',
    execute: async ({ text: written, to }, ctx) => {
      if (to !== undefined && to !== run.sessionKey && run.authority !== 'owner') {
        throw new Error('Only the owner may have messages sent to other conversations.');
      }
      const { laneKey, epoch, runId } = { laneKey: run.sessionKey, epoch: run.epoch, runId: run.runId };
      if (run.route === undefined)
        throw new Error('This turn has no conversation to send to; answer in text.');
      const silence = judgeWritten(written, 'chat');
      if (silence.kind === 'silent') return { text: 'Nothing was sent: this text asks for silence.' };
      const { text } = silence;
      const route = withoutQuote(run.route);
      // The other conversation may be on a network that takes less.
      const speaksIn = to === undefined || to === run.sessionKey ? route : await deps.routeTo(to);
      const limits = (speaksIn && deps.capabilitiesFor(speaksIn)?.text) ?? { maxLength: 2000 };
      const texts = await deps.shaper.shape(text, limits);
      const contents = texts.map((each): OutboundContent => ({ kind: 'text', text: each }));
      if (contents.length === 0) throw new Error('There is nothing to send in this text.');
      const key = `${runId}:tool:${ctx.callId}`;
      const posted = await deps.post.send(
        { laneKey, epoch, runId, key, route, contents, ...(to !== undefined && { toLane: to }) },
        ctx.signal,
      );
      const state = posted.state === 'sent' || posted.state === 'failed' ? posted.state : 'unknown';
      if (state === 'failed') throw new Error(failureOf(posted));
      const sent = { state, route: posted.route, text, media: [] };
      const says = state === 'sent' ? 'Sent.' : 'It is on its way; whether it arrived is not known yet.';
      return { text: says, metadata: { sent, messageIds: posted.receipts } };
    },
  });
}

/** The parts of a message go one after the other, and none follows one that failed. */
function failureOf({ sentParts, keys, problem = 'the network refused it' }: ToolSendEnd): string {
  if (sentParts === 0) return `It was not delivered: ${problem}`;
  return `Only its beginning was delivered (${sentParts} of ${keys.length} messages), the rest was not: ${problem}`;
}
