import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { type QueueMode, queueModes } from '#contracts/queue-settings.ts';
import type { LanePage, LanePlace } from '../store/reads/read-live-lanes.ts';
import { serveCall } from './api-call.ts';
import { waitingItem } from './queue-routes.ts';
import { refuse } from './request-auth.ts';

/** A page of lanes. `version` changes whenever a lane does. */
export type ShownLanes = LanePage & { readonly version: number };

export type LanesRequest = {
  readonly after?: LanePlace | undefined;
  /** The version that the caller has: until something changes, the answer waits for `waitMs` at most. */
  readonly since?: number | undefined;
  readonly waitMs: number;
};

/** The owner's view of the lanes. */
export type OwnerLanes = {
  /** Lists a page of lanes. Abort only ends the wait. */
  list(asked: LanesRequest, signal: AbortSignal): Promise<ShownLanes>;
  /** Returns false when there is no such conversation. */
  setMode(laneKey: string, mode: QueueMode): Promise<boolean>;
};

/** Longest wait for a change, ms: a proxy may cut off a request that takes a minute. */
const longestWaitMs = 30_000;

const place = z
  .string()
  .max(2_100)
  .regex(/^(?:busy|idle):/)
  .transform((text): LanePlace => ({ group: text.startsWith('busy') ? 'busy' : 'idle', key: text.slice(5) }));

const lane = z.object({
  key: z.string(),
  class: z.string().describe('`main`: a conversation, whose mode and waiting messages may be changed'),
  agentId: z.string(),
  title: z.string().optional(),
  mode: z.string(),
  state: z
    .enum(['active', 'parked', 'unheld', 'due', 'armed', 'idle'])
    .describe(
      '`unheld`: a run without a holder; `due`: waiting for a free worker; `armed`: waiting for a later time',
    ),
  holder: z
    .object({
      id: z.string(),
      role: z.string().exactOptional(),
      leaseAgeMs: z.int().describe('Since its last renewal'),
    })
    .exactOptional()
    .describe('The process that is working on it'),
  run: z
    .object({
      id: z.string(),
      kind: z.string(),
      ageMs: z.int(),
      waitsFor: z.string().exactOptional().describe('While it is parked'),
      isStopping: z.boolean(),
    })
    .exactOptional(),
  waiting: z.array(waitingItem).readonly().describe('The next ones, 20 at most'),
  waitingCount: z.int(),
});

const list = {
  method: 'GET',
  path: '/api/lanes',
  summary: 'Lists lanes 25 at a time: those with a run or waiting messages first, then idle conversations',
  input: z.object({
    after: place.exactOptional().describe('`next` of the previous page'),
    since: z.coerce
      .number()
      .exactOptional()
      .describe('`version` of an earlier answer: this one comes once a lane has changed'),
    waitMs: z.coerce.number().int().min(0).max(longestWaitMs).default(0).describe('Longest such wait'),
  }),
  answer: z.object({
    lanes: z.array(lane).readonly(),
    next: z.string().exactOptional().describe('Absent on the last page'),
    version: z.number(),
  }),
} as const;

const setMode = {
  method: 'POST',
  path: '/api/lanes/mode',
  summary: 'Changes the queue mode of a conversation, as the chat command does',
  input: z.strictObject({ lane: z.string().min(1).max(2_048), mode: z.enum(queueModes) }),
  answer: z.object({ status: z.literal('done') }),
  refusals: { 404: ['not_found'] },
} as const;

/** Serves the list of lanes and the change of a mode. */
export function mountLanes(app: FastifyInstance, lanes: OwnerLanes): void {
  serveCall(app, list, async (asked, { reply }) => {
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const { next, ...page } = await lanes.list(asked, gone.signal);
    return { ...page, ...(next && { next: `${next.group}:${next.key}` }) };
  });

  serveCall(app, setMode, async ({ lane: laneKey, mode }, { reply }) => {
    if (await lanes.setMode(laneKey, mode)) return { status: 'done' as const };
    return refuse(reply, { status: 404, code: 'not_found' });
  });
}
