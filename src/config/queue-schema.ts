/** The schema of how lanes treat incoming messages, and of how senders are notified. */
import { z } from 'zod';
import { dropPolicies, longestWindows, queueModes } from '#contracts/queue-settings.ts';
import { peer } from './peer.ts';

const queueFields = {
  mode: z.enum(queueModes).describe('What happens to a message that arrives during a run.'),
  debounceMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .describe(
      `Debounce before a first run, in ms. Each message restarts it, up to ${longestWindows} times its length.`,
    ),
  quietMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .describe(
      `With collect: how long to wait for more messages after a run, in ms. Each message restarts it, up to ${longestWindows} times its length.`,
    ),
  cap: z.int().min(1).max(1000).describe('How many messages may wait.'),
  drop: z.enum(dropPolicies).describe('Messages to drop when the cap is reached.'),
};

const queueDefaults = (mode: (typeof queueModes)[number]) =>
  z
    .strictObject({
      mode: queueFields.mode.default(mode),
      debounceMs: queueFields.debounceMs.default(0),
      quietMs: queueFields.quietMs.default(1000),
      cap: queueFields.cap.default(20),
      drop: queueFields.drop.default('summarize'),
    })
    .prefault({});

const queueOverride = z.strictObject({
  mode: queueFields.mode.exactOptional(),
  debounceMs: queueFields.debounceMs.exactOptional(),
  quietMs: queueFields.quietMs.exactOptional(),
  cap: queueFields.cap.exactOptional(),
  drop: queueFields.drop.exactOptional(),
});

const noticeKind = z.enum(['reaction', 'line', 'off']);

const waitingNotice = z
  .strictObject({
    kind: noticeKind
      .default('reaction')
      .describe(
        'Waiting notice: a reaction if the network has them, otherwise a line in direct chats (reaction); a line in direct chats and a reaction in groups (line); none (off).',
      ),
    afterMs: z
      .int()
      .min(500)
      .max(3_600_000)
      .default(2000)
      .describe('How long a message waits before the notice, in ms.'),
    emoji: z.string().min(1).max(16).default('👀').describe('Reaction to use; the network must allow it.'),
    channels: z.record(z.string(), noticeKind).default({}).describe('Overrides per channel.'),
  })
  .prefault({});

export const queue = z
  .strictObject({
    dm: queueDefaults('steer'),
    group: queueDefaults('collect'),
    channels: z.record(z.string(), queueOverride).default({}).describe('Overrides per channel.'),
    conversations: z
      .record(peer, queueOverride)
      .default({})
      .describe('Overrides per conversation (channel:conversation).'),
    waitingNotice,
  })
  .prefault({});
