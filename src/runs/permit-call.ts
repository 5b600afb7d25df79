// Decides whether a call may run: the rules of its agent and of the agents that spawned it, the strictest of which counts
// → what a person has already approved, once or for longer → otherwise a person is asked.

import { type Authority, lowestAuthority } from '#contracts/outcome.ts';
import { parseSessionKey, topLaneOf } from '#contracts/session-key.ts';
import type { ToolRun } from '#contracts/tool.ts';
import type { Permit, PermitRequest } from '../agent/loop-config.ts';
import type { CallRule } from '../config/config.ts';
import { readRunCause } from '../store/approvals/call-approval.ts';
import { isGranted } from '../store/approvals/grant.ts';
import type { Store } from '../store/base/command.ts';

type CallAction = CallRule['action'];

export type PermitDeps = {
  readonly store: Store;
  rulesOf(agent: string): readonly CallRule[];
  /** Returns the present authority of each of these accounts (`channel:peer`) in a direct conversation. */
  authoritiesOf(refs: readonly string[]): Promise<readonly Authority[]>;
};

/** Creates the function that decides about every call of every run. */
export function createPermit({ store, rulesOf, authoritiesOf }: PermitDeps) {
  return async (run: ToolRun, { tool, input, digest, isApproved }: PermitRequest): Promise<Permit> => {
    const { runId, authority } = run;
    const actions = agentsOf(run).map((agent) => actionFor(rulesOf(agent), tool, input));
    const action = actions.reduce(stricter);
    if (action === 'deny') return 'denied';
    if (isApproved) return (await mayStillCause(run, tool)) ? 'allowed' : 'revoked';
    if (action === 'allow') return 'allowed';
    const isCovered = await store.read(isGranted, { runId, authority, tool: tool.name, digest: digest() });
    return isCovered ? 'allowed' : 'ask';
  };

  /** Access may have been revoked or reduced while the question was open. */
  async function mayStillCause(
    { runId, sessionKey }: ToolRun,
    { authority }: PermitRequest['tool'],
  ): Promise<boolean> {
    // A group decides by its own list who its members are, and a revocation there stops the person's runs.
    if (authority === 'guest' || (authority === 'member' && isGroup(sessionKey))) return true;
    const { askers } = await store.read(readRunCause, { runId });
    const present = await authoritiesOf(askers);
    return present.every((each) => lowestAuthority(each, authority) === authority);
  }
}

function isGroup(key: string): boolean {
  const parts = parseSessionKey(topLaneOf(key));
  return (parts?.kind === 'thread' ? parts.within : parts)?.kind === 'group';
}

/** Returns the agent of the run, and of the runs above it: a sub-agent may do no more than those. */
function agentsOf({ agentId, sessionKey }: ToolRun): readonly [string, ...string[]] {
  const above: string[] = [];
  let parts = parseSessionKey(sessionKey);
  while (parts?.kind === 'sub-agent') {
    parts = parseSessionKey(parts.parent);
    if (parts?.kind === 'thread') above.push(parts.within.agent);
    else if (parts) above.push(parts.agent);
  }
  return [agentId, ...above];
}

const strictness: Readonly<Record<CallAction, number>> = { allow: 0, ask: 1, deny: 2 };

function stricter(one: CallAction, other: CallAction): CallAction {
  return strictness[one] >= strictness[other] ? one : other;
}

/** Returns the action of the first rule that matches; without one, what the tool itself asks for. */
export function actionFor(
  rules: readonly CallRule[],
  tool: Pick<PermitRequest['tool'], 'name' | 'approval'>,
  input: unknown,
): CallAction {
  const rule = rules.find((each) => each.tool === tool.name && fits(each, input));
  return rule?.action ?? tool.approval ?? 'allow';
}

function fits({ match = {}, action }: CallRule, input: unknown): boolean {
  return Object.entries(match).every(([name, pattern]) => {
    const value =
      typeof input === 'object' && input !== null ? (input as Record<string, unknown>)[name] : undefined;
    if (value === undefined) return false;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return fitsPattern(pattern, text, action === 'allow' ? 'safe' : 'any');
  });
}

/** Characters by which a shell begins another command, or reads another file: no `*` of a rule that allows covers them. */
const shellMark = /[;&|<>`$(){}\\"'\r\n]/;

/**
 * Says whether the text is the pattern, in which `*` stands for any text; `safe`: for text that can't turn one command
 * into two. Linear: each piece between two stars is searched once, behind the one before.
 */
export function fitsPattern(pattern: string, text: string, stars: 'any' | 'safe'): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length)
    return false;
  const end = text.length - last.length;
  let at = first.length;
  const covered: string[] = [];
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    covered.push(text.slice(at, found));
    at = found + piece.length;
  }
  covered.push(text.slice(at, end));
  return stars === 'any' || !covered.some((each) => shellMark.test(each));
}
