import { connectionName } from '#contracts/connection-name.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import type { Store } from '../store/base/command.ts';
import type { CommandEffect, CommandReplies, Decision, Proposal } from '../store/intake/proposal.ts';
import {
  type LaneStatus,
  readLaneStatus,
  readSessions,
  type SessionSummary,
} from '../store/reads/read-sessions.ts';
import type { Notices } from '../texts/notices.ts';
import { fillNotice } from '../texts/notices.ts';
import { type CommandSpec, commandTable } from './command-table.ts';
import { type Command, commandRight } from './commands.ts';
import type { Gate } from './gate.ts';
import { decideLink, reachOfStop } from './link-command.ts';
import { readOneTimeCode } from './one-time-code.ts';
import { type Decided, decidePair, decideStartCode } from './pair-command.ts';
import { type CommandArrival, laneCommand } from './propose.ts';
import { decideQueue, describeQueue } from './queue-command.ts';

export interface CommandDesk {
  /** Turns a command into what is to be stored: an effect with its answer, or an item of the lane. */
  decide(command: CommandArrival): Promise<Proposal>;
}

export type CommandDeskDeps = {
  readonly store: Store;
  readonly gate: Gate;
  /** For `/status`: the model in use, as the person should see it. */
  readonly modelName: string;
  /** What an agent calls itself. */
  agentName(id: string): string;
};

export function createCommandDesk(deps: CommandDeskDeps): CommandDesk {
  return {
    decide: async (command) => {
      const { parsed, event } = command;
      if (parsed.kind === 'command' && parsed.spec.scope === 'lane') {
        return { ...event, decision: laneCommand(deps.gate, command) };
      }
      return { ...event, decision: await immediate(deps, command) };
    },
  };
}

async function immediate(deps: CommandDeskDeps, arrival: CommandArrival): Promise<Decision> {
  const { parsed, lane } = arrival;
  const { route } = arrival.arrival.envelope;
  const { notices } = deps.gate;
  const decision = (effect: CommandEffect, replies: Omit<CommandReplies, 'route'>): Decision => ({
    kind: 'command',
    command: parsed.spec.name,
    effect,
    lane,
    replies: { ...replies, route },
  });
  if (parsed.kind === 'malformed') return decision({ kind: 'none' }, { done: parsed.problem });
  const { command } = parsed;
  switch (command.name) {
    case 'stop': {
      const isPrivileged = arrival.right === 'allowed';
      const linked = reachOfStop(deps.gate, arrival);
      const notPermitted = fillNotice(notices.notPermitted, { who: 'an admin, or whoever started it,' });
      return decision(
        { kind: 'stop', isPrivileged, isAll: command.target === 'all', ...(linked && { linked }) },
        { done: notices.stopped, nothing: notices.nothingToStop, notPermitted },
      );
    }
    case 'activation': {
      const done =
        command.activation === 'always'
          ? 'I now answer every message here.'
          : 'I now answer here when I am mentioned.';
      return decision({ kind: 'activation', value: command.activation }, { done });
    }
    case 'queue': {
      const { effect, replies } = await decideQueue(deps, arrival, command.request);
      return decision(effect, replies);
    }
    case 'link': {
      const decided = decideLink(deps.gate, arrival, command.request);
      return decided.kind === 'link' ? decided : decision({ kind: 'none' }, { done: decided.text });
    }
    case 'pair': {
      const { effect, replies } = await decidePair(deps, arrival, command.request);
      return decision(effect, replies);
    }
    case 'start': {
      const { effect, replies } = decideStart(deps, arrival, command);
      return decision(effect, replies);
    }
    default:
      return decision({ kind: 'none' }, { done: await answer(deps, arrival, command) });
  }
}

async function answer(deps: CommandDeskDeps, arrival: CommandArrival, command: Command): Promise<string> {
  switch (command.name) {
    case 'help':
      return usableBy(arrival)
        .map(({ name, usage, description }) => `/${name}${usage === '' ? '' : ` ${usage}`}: ${description}`)
        .join('\n');
    case 'whoami':
      return describeSender(arrival);
    case 'status':
      return describeStatus(deps, arrival);
    default:
      return '';
  }
}

function usableBy({ arrival, authority }: CommandArrival) {
  const { chat, sender } = arrival.envelope;
  const asking = { chat: chat.kind, authority, isAdmin: sender.isAdmin };
  const isUsable = (spec: CommandSpec) =>
    spec.inGroups === 'own-items' || commandRight({ spec }, asking) !== 'denied';
  return commandTable.filter(isUsable);
}

/** The session key leads to everything that was said under it, so only an owner is shown it. */
function describeSender({ arrival, authority, lane }: CommandArrival): string {
  const { route, chat, sender } = arrival.envelope;
  const isAdmin = chat.kind === 'group' && sender.isAdmin === true;
  return [
    `You are ${platformRef(route.channel, sender.id)}, here as ${authority}${isAdmin ? ' and as an administrator of this group' : ''}.`,
    `Agent: ${lane.agentId}`,
    ...(authority === 'owner' ? [`Session: ${lane.key}`] : []),
  ].join('\n');
}

/** Whoever opens a link has said nothing yet: its code is explained, and does nothing by itself. */
function decideStart(
  { gate, agentName }: CommandDeskDeps,
  { arrival, authority, lane }: CommandArrival,
  { payload = '' }: Extract<Command, { name: 'start' }>,
): Decided {
  const greeting = `Hello! I am ${agentName(lane.agentId)}, an AI agent. Just write to me; /help shows the commands.`;
  const code = arrival.envelope.chat.kind === 'dm' ? readOneTimeCode(payload) : undefined;
  if (code === undefined) return { effect: { kind: 'none' }, replies: { done: greeting } };
  const hinted = `${greeting}\n${fillNotice(gate.notices.startCodeHint, { code })}`;
  if (authority === 'owner') return decideStartCode(gate.notices, { code, otherwise: hinted });
  return { effect: { kind: 'none' }, replies: { done: hinted } };
}

async function describeStatus(
  { store, modelName, gate }: CommandDeskDeps,
  { lane, arrival }: CommandArrival,
): Promise<string> {
  const status = await store.read(readLaneStatus, { laneKey: lane.key });
  const sessions = await store.read(readSessions, { keys: [lane.key], limit: 1 });
  return [
    `Agent ${lane.agentId}, model ${modelName}`,
    `Account ${connectionName(arrival.envelope.route.channel, arrival.accountName)} (${arrival.botName})`,
    workLine(status, gate.notices),
    sessionLine(sessions[0]),
    describeQueue(gate.notices, { ...lane.settings, ...status?.overrides }),
  ].join('\n');
}

function workLine(status: LaneStatus | undefined, notices: Notices): string {
  if (!status?.isRunning) return notices.nothingToStop;
  const seconds =
    status.runStartedAt === undefined ? 0 : Math.round((Date.now() - status.runStartedAt) / 1000);
  return `Working for ${seconds} s; ${status.waiting} waiting.`;
}

function sessionLine(session: SessionSummary | undefined): string {
  if (!session) return 'No conversation yet.';
  const tokens = session.promptTokens + session.completionTokens;
  return `Session: ${session.messageCount} messages, ${tokens} tokens in the last call, $${(session.cost / 1e6).toFixed(4)}`;
}
