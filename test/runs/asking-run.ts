/** Runs whose calls need an approval, played without a channel. */
import type { CallRule } from '../../src/config/config.ts';
import type { Authority } from '../../src/contracts/outcome.ts';
import type { Tool } from '../../src/contracts/tool.ts';
import { createPermit } from '../../src/runs/permit-call.ts';
import { decideOnPage } from '../../src/store/access/decide-approval.ts';
import type { Decider } from '../../src/store/access/sender-roles.ts';
import type { Verdict } from '../../src/store/approvals/approval.ts';
import { readOpenCallApprovals } from '../../src/store/approvals/call-approval.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { aTool } from '../agent/support/builders.ts';
import { type Play, type ScriptedCall, scriptedModel } from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { playNext } from './run-builders.ts';

export const ann: Decider = {
  ref: 'test:ann',
  label: 'test:ann',
  isOwner: false,
  authority: 'member',
  role: 'user',
};
export const owner: Decider = { ref: 'page', label: 'the page', isOwner: true, role: 'user' };
export const eve: Decider = {
  ref: 'test:eve',
  label: 'test:eve',
  isOwner: false,
  authority: 'member',
  role: 'user',
};

export const call = (id: string, name = 'act'): ScriptedCall => ({ id, name, input: { of: id } });

/** Opens a conversation of a member, whose agent asks about its calls; `validMs`: how long a question stays open. */
export function openAsking(store: Store, { validMs = 900_000 } = {}) {
  const { conversation, conversationKey, laneKey, say, claimPart, record, ...rest } = aConversation(store);
  const ran: string[] = [];
  let onCall: (callId: string) => void = () => undefined;
  const act = (name: string, changes: Partial<Tool> = {}) =>
    aTool(name, {
      approval: 'ask',
      authority: 'member',
      execute: async (_, { callId }) => {
        onCall(callId);
        return { text: `${callId} ran as ${ran.push(callId)}` };
      },
      ...changes,
    });
  const tools = [
    act('act'),
    act('anyone', { authority: 'guest' }),
    act('beside', { parallelSafe: true }),
    act('free', { approval: undefined as never }),
  ];
  const rules: CallRule[] = [];
  const authority: Authority = 'member';
  const now: { present: Authority } = { present: authority };
  const permit = createPermit({
    store,
    rulesOf: () => rules,
    authoritiesOf: async (refs) => refs.map(() => now.present),
  });
  /** Claims the lane in a new process and plays its run. */
  const playIn = async (lane: string, ...plays: readonly Play[]) => {
    const model = scriptedModel(...plays);
    const over = { approvals: { validMs, owners: [] }, permit };
    const { exit } = await playNext(store, lane, { model, tools, over });
    return { exit, shown: () => JSON.stringify(model.requests.at(-1)?.messages), model };
  };
  const play = (...plays: readonly Play[]) => playIn(laneKey, ...plays);
  const questionsIn = async (lane: string) =>
    (await store.read(readOpenCallApprovals, { limit: 500, isDue: false }))
      .filter((each) => each.laneKey === lane)
      .reverse();
  const questions = () => questionsIn(laneKey);
  const press = async (id: string, verdict: Verdict, by: Decider = ann) =>
    (await store.write(decideOnPage, { id, verdict, by })).decided;
  const decide = async (verdict: Verdict, by: Decider = ann, which = 0) =>
    press((await questions())[which]?.id ?? 'none', verdict, by);
  const sayAs = (text: string) => say(text, { item: { authority } });
  return {
    conversation,
    conversationKey,
    laneKey,
    say: sayAs,
    rest,
    ran,
    /** Calls the listener before each execution. */
    onCall: (listener: typeof onCall) => {
      onCall = listener;
    },
    rules,
    now,
    play,
    playIn,
    questions,
    questionsIn,
    press,
    decide,
    claimPart,
    record,
  };
}

/** Reads the texts of the conversation's parts, and the buttons of the first. */
export const readParts: StoreQuery<
  { readonly conversationKey: string },
  readonly { text: string; buttons: readonly string[] }[]
> = {
  query: 'readParts',
  run: async (tx, { conversationKey }) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select('content')
      .where('conversationKey', '=', conversationKey)
      .orderBy('place')
      .execute();
    return rows.map(({ content }) => {
      const { text, buttons = [] } = JSON.parse(content);
      return { text: text.text, buttons: buttons.map(({ label }: { label: string }) => label) };
    });
  },
};
