/** Shows the sub-agents of this conversation, what they do and have said, and steers or stops one of them. */
import type { ChildView } from '#contracts/child.ts';
import { textOf } from '#contracts/message.ts';
import type { Authority } from '#contracts/outcome.ts';
import { platformRef } from '../sessions/identities.ts';
import { lockCommand } from '../store/access/sender-roles.ts';
import type { CommandScene, StepTx } from '../store/base/command.ts';
import { addEffects } from '../store/base/effects.ts';
import { newRowId } from '../store/base/keys.ts';
import { lockBranch, steerChild, stopChild } from '../store/children/operate-child.ts';
import { readConversationChildren, readRunSenders } from '../store/reads/read-activity.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';
import { type ChatTexts, dollarText, fillText } from '../texts/chat-texts.ts';
import { cleanLabel, stripControls } from '../texts/untrusted-text.ts';
import {
  type Asker,
  adminsInGroups,
  type CommandCall,
  type CommandDeps,
  chatCommand,
  type Problem,
  type Right,
} from './chat-command.ts';
import { linkedAccounts } from './one-time-code.ts';

/** How many of the conversation's own sub-agents are listed. */
const shown = 20;
/** How many messages `log` shows, and how many characters of each. */
const logged = 8;
const loggedLength = 400;
/** How many letters of an id the list shows. */
const shortId = 5;

export const subagents = chatCommand({
  name: 'subagents',
  usage: '[list|info id|log id|steer id text|stop id]',
  menu: 'subagentsMenu',
  isForAll: true,
  parse: parseSubagentsRequest,
  // Only people who may direct a sub-agent see what it reads and says; that it is running is no secret.
  right: rightToDirect,
  load,
  lock: async (tx, place, input) => {
    if (input.kind !== 'stop' && input.kind !== 'steer') return input;
    // Its end is announced in the lane that spawned it.
    await lockCommand(tx, place, { lanes: input.laneKeys.map((key) => ({ key })) });
    await lockBranch(tx, input.child.id);
    return input;
  },
  apply,
  say,
  isRefused: ({ kind }) => kind === 'not-permitted' || kind === 'lesser-rights',
});

type Found =
  | { readonly kind: 'list'; readonly children: readonly ChildView[]; readonly now: number }
  | { readonly kind: 'unknown' | 'several'; readonly which: string }
  | { readonly kind: 'not-permitted' }
  | { readonly kind: 'info'; readonly child: ChildView; readonly now: number }
  | { readonly kind: 'log'; readonly child: ChildView; readonly lines: readonly LogLine[] };

type LogLine = { readonly role: string; readonly text: string };

type SubagentsInput =
  | Found
  | { readonly kind: 'stop'; readonly child: ChildView; readonly laneKeys: readonly string[] }
  | {
      readonly kind: 'steer';
      readonly child: ChildView;
      readonly laneKeys: readonly string[];
      readonly by: string;
      readonly id: string;
      readonly text: string;
      readonly authority: Authority;
    };

async function load(
  deps: CommandDeps,
  call: CommandCall,
  request: SubagentsRequest,
): Promise<SubagentsInput> {
  const { now, authority } = call;
  const { laneKeys, people } = conversationOf(deps, call);
  const children = await deps.store.read(readConversationChildren, { laneKeys, limit: shown });
  if (request.kind === 'list')
    return { kind: 'list', children: children.filter(({ isArchived }) => !isArchived), now };
  const [child, ...others] = children.filter(({ id }) => id.startsWith(request.which));
  if (!child) return { kind: 'unknown', which: request.which };
  if (others.length > 0) return { kind: 'several', which: request.which };
  if (call.right === 'own' && !(await hasStarted(deps, call, { id: child.id, people })))
    return { kind: 'not-permitted' };
  switch (request.kind) {
    case 'info':
      return { kind: 'info', child, now };
    case 'log':
      return { kind: 'log', child, lines: await readLog(deps, child) };
    case 'stop':
      return { kind: 'stop', child, laneKeys };
    case 'steer': {
      const by = platformRef(call.envelope.route.channel, call.envelope.sender.id);
      return { kind: 'steer', child, laneKeys, by, id: newRowId(), text: request.text, authority };
    }
    default:
      return request satisfies never;
  }
}

/** Lets everybody list what works below a conversation; what it reads and says is for those who may direct it. */
export function rightToDirect(asker: Asker, request: { readonly kind: string } | undefined): Right {
  const right = adminsInGroups(asker);
  return right === 'denied' ? (request?.kind === 'list' ? 'allowed' : 'own') : right;
}

/** Returns the lanes of the sender's conversation, and the accounts linked to the sender's. */
export function conversationOf(
  { policy }: CommandDeps,
  call: CommandCall,
): { readonly laneKeys: readonly string[]; readonly people: readonly string[] } {
  const linked = linkedAccounts(policy, call);
  // Runs from before the link continue in the former lane.
  return { laneKeys: [call.lane.key, ...(linked ? [linked.formerLane] : [])], people: linked?.people ?? [] };
}

/** Says whether the run at the top of the tree of a sub-agent or task answers a message of the sender's. */
export async function hasStarted(
  { store }: CommandDeps,
  { envelope }: CommandCall,
  { id, people }: { readonly id: string; readonly people: readonly string[] },
): Promise<boolean> {
  const { route, sender } = envelope;
  const own = new Set([platformRef(route.channel, sender.id), ...people]);
  return (await store.read(readRunSenders, { id })).some((ref) => own.has(ref));
}

async function readLog({ store }: CommandDeps, { id }: ChildView): Promise<readonly LogLine[]> {
  const page = await store.read(readTranscriptPage, { sessionId: id, limit: logged });
  return page.flatMap(({ role, parts }) => {
    const calls = parts.flatMap((part) => (part.type === 'tool_call' ? [`[${part.data.name}]`] : []));
    const text = [textOf(parts).trim(), ...calls].filter((said) => said !== '').join(' ');
    return text === '' ? [] : [{ role, text: text.slice(0, loggedLength).toWellFormed() }];
  });
}

type Facts =
  | Found
  | { readonly kind: 'stopped' | 'steered' | 'ended' | 'lesser-rights'; readonly child: ChildView };

async function apply(tx: StepTx, { effects }: CommandScene, input: SubagentsInput): Promise<Facts> {
  if (input.kind !== 'stop' && input.kind !== 'steer') return input;
  const { child } = input;
  if (input.kind === 'steer') {
    const steered = await steerChild.run(tx, { ...input, childId: child.id });
    addEffects(effects, steered.effects);
    if (steered.kind === 'lesser-rights') return { kind: 'lesser-rights', child };
    return { kind: steered.kind === 'done' ? 'steered' : 'ended', child };
  }
  const stopped = await stopChild.run(tx, { childId: child.id });
  addEffects(effects, stopped.effects);
  return { kind: stopped.kind === 'done' ? 'stopped' : 'ended', child };
}

function say(facts: Facts, texts: ChatTexts): string {
  switch (facts.kind) {
    case 'list':
      return sayList(facts, texts);
    case 'unknown':
      return fillText(texts.childUnknown, facts);
    case 'several':
      return fillText(texts.childSeveral, facts);
    case 'not-permitted':
      return fillText(texts.notPermitted, { who: texts.whoStops });
    case 'info': {
      const { child, now } = facts;
      const cost = dollarText(child.cost);
      const { agentId: agent, depth, tokens } = child;
      return `${lineOf(child, { now, texts })}\n${fillText(texts.childInfo, { agent, depth, tokens, cost })}`;
    }
    case 'log': {
      const lines = facts.lines.map(({ role, text }) => `${role}: ${stripControls(text)}`);
      return lines.length === 0 ? fillText(texts.childNoLog, namesOf(facts.child)) : lines.join('\n');
    }
    case 'stopped':
      return fillText(texts.childStopped, namesOf(facts.child));
    case 'steered':
      return fillText(texts.childSteered, namesOf(facts.child));
    case 'ended':
      return fillText(texts.childEnded, namesOf(facts.child));
    case 'lesser-rights':
      return fillText(texts.childLesserRights, namesOf(facts.child));
    default:
      return facts satisfies never;
  }
}

type Scene = { readonly now: number; readonly texts: ChatTexts };

function sayList({ children, now }: Extract<Facts, { kind: 'list' }>, texts: ChatTexts): string {
  if (children.length === 0) return texts.childrenNone;
  return [...children.map((child) => lineOf(child, { now, texts })), texts.childrenHint].join('\n');
}

function lineOf(child: ChildView, { now, texts }: Scene): string {
  const line = fillText(texts.childLine, { ...namesOf(child), state: stateOf(child, { now, texts }) });
  return `${'· '.repeat(child.depth - 1)}${line}`;
}

function namesOf({ id, name }: ChildView) {
  return { id: id.slice(0, shortId), name: cleanLabel(name) };
}

const endTexts = {
  completed: 'childDone',
  failed: 'childFailed',
  'timed-out': 'childTimedOut',
  stopped: 'childWasStopped',
  lost: 'childLost',
} as const;

function stateOf(child: ChildView, { now, texts }: Scene): string {
  const { startedAt, endedAt = now, status, tokens } = child;
  if (child.state === 'queued') return texts.childQueued;
  const seconds = Math.max(0, Math.round((endedAt - (startedAt ?? endedAt)) / 1000));
  if (child.state === 'running') return fillText(texts.childRunning, { seconds });
  return fillText(texts.childEnd, { end: texts[endTexts[status ?? 'lost']], seconds, tokens });
}

/** Parsed words of `/subagents …`. `which`: the beginning of an id, as shown in the list. */
type SubagentsRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'info' | 'log' | 'stop'; readonly which: string }
  | { readonly kind: 'steer'; readonly which: string; readonly text: string };

/** Parses the words after `/subagents`: nothing, `list`, `info x`, `log x`, `stop x`, or `steer x the new words`. */
function parseSubagentsRequest(words: string): SubagentsRequest | Problem {
  const [, verb = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(words.trim()) ?? [];
  const [, which = '', text = ''] = /^#?([a-z2-7]{2,16})(?:\s+([\s\S]+))?$/i.exec(rest) ?? [];
  const kind = verb.toLowerCase();
  const id = which.toLowerCase();
  switch (kind) {
    case '':
      return { kind: 'list' };
    case 'list':
      return rest === ''
        ? { kind: 'list' }
        : { problem: 'commandAlone', values: { command: '/subagents list' } };
    case 'info':
    case 'log':
    case 'stop':
      return id !== '' && text === ''
        ? { kind, which: id }
        : { problem: 'childUsage', values: { verb: kind } };
    case 'steer':
      return id !== '' && text !== '' ? { kind, which: id, text } : { problem: 'childSteerUsage' };
    default:
      return { problem: 'childUnknownVerb', values: { verb } };
  }
}
