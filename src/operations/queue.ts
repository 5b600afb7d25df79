/** The waiting messages of all conversations, and changes to them as the owner, who may change any. */
import { z } from 'zod';
import { cleanText } from '#channel-kit/clean-text.ts';
import { maxTextLength, tooLongText } from '#channel-kit/client-frames.ts';
import { describeItemChange, wordsFor } from '../commands/queue.ts';
import { cancelItem, editItem, promoteItem } from '../store/items/change-item.ts';
import { findQueuedItem, readItemText, readQueuedItems } from '../store/reads/read-waiting-items.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { type Caller, type ChangeDeps, operation, Refusal, refuseId, type StoreDeps } from './operation.ts';

export type QueueDeps = ChangeDeps & {
  readonly texts: ChatTexts;
  /** The IANA name of the time zone, which a reload may change. */
  readonly policy: { readonly timeZone: string };
  /** The accounts of the machine's user, `<channel>:<peer>`, who isn't notified of their own changes. */
  readonly people: readonly string[];
  /** Called when a lane has changed, since no effect notifies its clients. */
  changed(laneKey: string): void;
};

/** A waiting message in lists. */
export const waitingItem = z.object({
  id: z.string(),
  number: z.int(),
  kind: z.enum(['message', 'correction', 'command']),
  state: z.enum(['waiting', 'held', 'fetching']),
  sender: z.string(),
  senderName: z.string(),
  excerpt: z.string(),
  files: z.int(),
  isAhead: z.boolean(),
  ageMs: z.int(),
});

/** How many waiting messages a list shows. */
const listed = 500;

export const listQueue = operation({
  name: 'queue',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists the waiting messages of all conversations, next first',
  answer: z.object({
    items: z
      .array(
        waitingItem.extend({
          laneKey: z.string(),
          position: z.int().describe('In its conversation, from 1, which is taken next'),
          mode: z.string(),
        }),
      )
      .readonly(),
  }),
  run: async ({ store }: StoreDeps) => ({ items: await store.read(readQueuedItems, { limit: listed }) }),
});

export const showQueued = operation({
  name: 'queue/text',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Shows the complete text of a waiting message',
  input: z.object({ id: z.string().min(1).max(100).describe('As listed') }),
  answer: z.object({ text: z.string() }),
  refusals: ['not_found'],
  run: async ({ store }: StoreDeps, { id }) => {
    const text = await store.read(readItemText, { id });
    return text === undefined ? refuseId({ kind: 'none' }, id, waiting) : { text };
  },
});

const changing = {
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  input: z.strictObject({ id: z.string().min(1).max(100).describe('As listed, or the beginning of it') }),
  answer: z.object({
    id: z.string(),
    laneKey: z.string(),
    number: z.int(),
    excerpt: z.string().exactOptional().describe('Absent when an edit becomes a correction'),
    text: z.string().describe('The result, for people'),
  }),
  refusals: ['not_found', 'ambiguous', 'not_possible'],
} as const;

export const cancelQueued = operation({
  ...changing,
  name: 'queue/cancel',
  summary: 'Cancels a waiting message; its sender is notified',
  run: (deps: QueueDeps, { id }, caller) => change(deps, { id, verb: 'cancel' }, caller),
});

export const promoteQueued = operation({
  ...changing,
  name: 'queue/promote',
  summary: 'Moves a waiting message to the front of its conversation',
  run: (deps: QueueDeps, { id }, caller) => change(deps, { id, verb: 'promote' }, caller),
});

/** One that a run has already taken is corrected. */
export const editQueued = operation({
  ...changing,
  name: 'queue/edit',
  summary: "Rewords a waiting message, in its sender's name and with its sender's permissions",
  input: z.strictObject({
    ...changing.input.shape,
    text: z
      .string()
      .max(maxTextLength, tooLongText)
      .transform(cleanText)
      .pipe(z.string().trim().min(1, 'The new text is empty.')),
  }),
  run: (deps: QueueDeps, { id, text }, caller) => change(deps, { id, verb: 'edit', text }, caller),
});

type Order = { readonly id: string } & (
  | { readonly verb: 'cancel' | 'promote' }
  | { readonly verb: 'edit'; readonly text: string }
);

const steps = { cancel: cancelItem, promote: promoteItem } as const;
const waiting = { noun: 'waiting message', list: 'queue list' } as const;

async function change(deps: QueueDeps, order: Order, { by }: Caller) {
  const { store, texts, policy, people } = deps;
  const found = await store.read(findQueuedItem, { id: order.id.toLowerCase() });
  if (found.kind !== 'found') return refuseId(found, order.id, waiting);
  const { id, laneKey, number } = found;
  const asked = { laneKey, number, actor: { ref: by, people, mayChangeAny: true, mayPromoteOwn: true } };
  const edit = async (text: string) => {
    const words = await wordsFor(store, { laneKey, number, text, timeZone: policy.timeZone });
    return words && store.write(editItem, { ...asked, ...words });
  };
  const { verb } = order;
  const result = await (verb === 'edit' ? edit(order.text) : store.write(steps[verb], asked));
  if (result === undefined) return refuseId({ kind: 'none' }, order.id, waiting);
  const { changed, effects } = result;
  deps.start(effects);
  deps.changed(laneKey);
  const text = describeItemChange({ verb, number, changed }, texts);
  if (changed.kind !== 'done' && changed.kind !== 'steered') return new Refusal('not_possible', text);
  return { id, laneKey, number, ...(changed.kind === 'done' && { excerpt: changed.excerpt }), text };
}
