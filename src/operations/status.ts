import { z } from 'zod';
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import type { ReloadResult } from '../config/live-settings.ts';
import { operation, Refusal } from './operation.ts';

export type StatusDeps = {
  status(): Promise<GatewayStatus>;
  /** Rereads the configuration; absent in a process that can't. */
  reload?(): Promise<ReloadResult>;
  /** The chat commands, for the page's menu. */
  commands(): readonly NativeCommand[];
};

const channel = z
  .object({
    id: z.string(),
    /** `standby`: another process receives for the account. */
    state: z.enum(['on', 'off', 'standby', 'trouble']),
    /** The account's name when on, else why it is off or in trouble, and what to do. */
    detail: z.string(),
    /** Start of a problem, and the channel's next retry, ms since the epoch. */
    since: z.int().exactOptional(),
    nextTryAt: z.int().exactOptional(),
  })
  .readonly();

const problem = z.object({ id: z.string(), text: z.string() }).readonly();

const status = z.object({
  version: z.string(),
  /** When this process started, ms since the epoch. */
  startedAt: z.int(),
  /** `isDemo`: the scripted model that answers without a key, which is shown as such. */
  model: z.object({ name: z.string(), isDemo: z.boolean() }).readonly(),
  channels: z.array(channel).readonly(),
  /** Missing components other than channels, named as in `/readyz`, with texts for the owner. */
  problems: z.array(problem).readonly().exactOptional(),
});

/** Content of the page's status area. It contains no secret: names, states and reasons only. */
export type GatewayStatus = Readonly<z.output<typeof status>>;
/** Something the gateway lacks, with a sentence for its owner. */
export type StatusProblem = z.output<typeof problem>;
/** State of one channel account. */
export type ChannelStatus = z.output<typeof channel>;

/** Answers also while the gateway waits to start. */
export const showStatus = operation({
  name: 'status',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Shows the version, model, channels and current problems',
  answer: status,
  run: (deps: StatusDeps) => deps.status(),
});

const names = z.array(z.string()).readonly();

const pluginChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['loaded', 'removed']), plugin: z.string() }),
  z.object({ kind: z.enum(['failed', 'waiting']), plugin: z.string(), problem: z.string() }),
]);

/** Never changes anything if the file has a problem. */
export const reload = operation({
  name: 'reload',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  summary: 'Reloads the configuration, and applies what it can without a restart',
  answer: z.discriminatedUnion('kind', [
    z.object({
      kind: z.literal('applied'),
      applied: names,
      needsRestart: names,
      plugins: z.array(pluginChange).readonly().describe('Plugins that have changed, or can’t be loaded'),
      pid: z.int().describe('The process that answered'),
    }),
    z.object({ kind: z.literal('refused'), problem: z.string(), pid: z.int() }),
  ]),
  refusals: ['not_possible'],
  run: async (deps: StatusDeps) => {
    const result = await deps.reload?.();
    return result === undefined ? new Refusal('not_possible') : { ...result, pid: process.pid };
  },
});

export const listCommands = operation({
  name: 'commands',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists the chat commands',
  answer: z.object({
    commands: z
      .array(z.object({ name: z.string(), description: z.string(), argument: z.string().exactOptional() }))
      .readonly(),
  }),
  run: async ({ commands }: StatusDeps) => ({ commands: commands() }),
});
