import type { BudgetScope } from '#contracts/model.ts';
import { microDollars } from '../config/units.ts';
import { budgetNames } from '../models/budget-rules.ts';
import { platformRef } from '../sessions/identities.ts';
import { closeAlert } from '../store/alerts/alert.ts';
import {
  type BudgetLimit,
  type BudgetState,
  hasBudget,
  raiseBudget,
  readBudgets,
} from '../store/money/budget.ts';
import { readLaneStatus } from '../store/reads/read-sessions.ts';
import { readPayer } from '../store/reads/read-usage.ts';
import { judgeRaise, type RaiseResult, readBudgetWait } from '../store/waits/budget-waits.ts';
import { type ChatTexts, dollarText, fillText } from '../texts/chat-texts.ts';
import { type CommandCall, type CommandDeps, chatCommand, type Problem } from './chat-command.ts';

/** `name`: a scope, or the key from the owner's alert. */
type Raise = { readonly name: string; readonly limit: number };
type Request = Raise | { readonly name?: undefined };

type Input =
  | {
      readonly kind: 'show';
      readonly budgets: readonly (BudgetLimit & BudgetState)[];
      readonly mayRaise: boolean;
    }
  /** `waitKey`: a budget of the same scope, but of another day or person, that the conversation's run waits for. */
  | { readonly kind: 'raise'; readonly budget: BudgetLimit; readonly waitKey?: string }
  | { readonly kind: 'unknown'; readonly name: string; readonly names: string }
  | { readonly kind: 'not-permitted' };

type RaiseInput = Extract<Input, { kind: 'raise' }>;
type Facts = Exclude<Input, RaiseInput> | (RaiseInput & { readonly result: RaiseResult });

/**
 * `/budget [name dollars]`: shows the budgets that apply here, with what they have spent and reserved; owners can set
 * another limit. A run that waits for room in the budget continues with the next sweep.
 */
export const budget = chatCommand<Request, Input, Facts>({
  name: 'budget',
  usage: '[name dollars]',
  menu: 'budgetMenu',
  isForAll: true,
  parse,
  right: ({ authority }, request) =>
    request?.name === undefined || authority === 'owner' ? 'allowed' : 'own',
  load,
  apply: async (tx, _scene, input) => {
    if (input.kind !== 'raise') return input;
    const { key, limit } = input.budget;
    const keys = [...new Set([key, input.waitKey ?? key])].toSorted();
    for (const each of keys) await raiseBudget(tx, { key: each, limit });
    for (const subject of keys) await closeAlert(tx, { kind: 'budget-spent', subject, isSilent: true });
    return { ...input, result: await judgeRaise(tx, keys) };
  },
  say,
  isRefused: ({ kind }) => kind === 'not-permitted',
});

/** Some people read three digits after a separator as thousands, so `1,000` and `1.000` are no valid amounts. */
const order = /^(\S{1,300})\s+\$?(\d{1,7}(?:[.,]\d{1,2})?|\d{1,7}\.\d{4,6}|0\.\d{3})$/;

function parse(words: string): Request | Problem {
  if (words === '') return {};
  const [, name, amount] = order.exec(words) ?? [];
  if (name === undefined || amount === undefined) return { problem: 'budgetUsage' };
  return { name, limit: microDollars(Number(amount.replace(',', '.'))) };
}

async function load(deps: CommandDeps, call: CommandCall, request: Request): Promise<Input> {
  const { store } = deps;
  if (request.name === undefined) {
    const isOwner = call.authority === 'owner';
    // Only owners see everybody's spending.
    const limits = (await limitsHere(deps, call)).filter(({ scope }) => isOwner || scope !== 'gateway');
    return { kind: 'show', budgets: await store.read(readBudgets, { limits }), mayRaise: isOwner };
  }
  if (call.authority !== 'owner') return { kind: 'not-permitted' };
  const { name, limit } = request;
  const limits = await limitsHere(deps, call, { ofRun: true });
  const found = limits.find(({ scope, key }) => scope === name.toLowerCase() || key === name);
  if (found) {
    const wait = await store.read(readBudgetWait, { laneKey: call.lane.key });
    const isOther = wait?.scope === found.scope && wait.key !== found.key;
    return { kind: 'raise', budget: { ...found, limit }, ...(isOther && { waitKey: wait.key }) };
  }
  const scope = scopeOf(name);
  if (scope && (await store.read(hasBudget, { key: name })))
    return { kind: 'raise', budget: { scope, key: name, limit } };
  return { kind: 'unknown', name, names: namesOf(limits) };
}

/** Returns the budgets of this conversation and its run. `ofRun`: for the person the run answers, not the sender. */
async function limitsHere(
  { store, budgets }: CommandDeps,
  { lane, envelope, identities, now }: CommandCall,
  { ofRun = false } = {},
): Promise<readonly BudgetLimit[]> {
  const { agentId } = lane;
  const status = await store.read(readLaneStatus, { laneKey: lane.key });
  const runId = status?.runId;
  const payer = runId === undefined ? undefined : await store.read(readPayer, { runId });
  const sender = platformRef(envelope.route.channel, envelope.sender.id);
  const ref = (ofRun && payer?.person) || sender;
  return budgets.limitsOf({
    ...{ runId, agentId, topAgentId: agentId, treeId: payer?.treeId, at: now },
    sessionId: status?.sessionId,
    person: identities.get(ref) ?? ref,
  });
}

function scopeOf(key: string): BudgetScope | undefined {
  const scope = key.slice(0, key.indexOf(':'));
  // Own properties only, because people type these names.
  return Object.hasOwn(budgetNames, scope) ? (scope as BudgetScope) : undefined;
}

function namesOf(limits: readonly BudgetLimit[]): string {
  return limits.map(({ scope }) => scope).join(', ');
}

function say(facts: Facts, texts: ChatTexts): string {
  switch (facts.kind) {
    case 'show': {
      const { budgets, mayRaise } = facts;
      if (budgets.length === 0) return texts.budgetNone;
      const hint = fillText(texts.budgetHint, { names: namesOf(budgets) });
      return [...budgets.map((each) => lineOf(each, texts)), ...(mayRaise ? [hint] : [])].join('\n');
    }
    case 'raise': {
      const { scope, limit } = facts.budget;
      const text = scope === 'person' || scope === 'gateway' ? texts.budgetSetToday : texts.budgetSet;
      const set = fillText(text, { which: texts[budgetNames[scope]], limit: dollarText(limit) });
      const paused = pausedTexts[facts.result];
      return paused === undefined ? set : `${set} ${texts[paused]}`;
    }
    case 'unknown':
      return facts.names === '' ? texts.budgetNone : fillText(texts.budgetUnknown, facts);
    case 'not-permitted':
      return fillText(texts.notPermitted, { who: texts.whoRaises });
    default:
      return facts satisfies never;
  }
}

const pausedTexts = { none: undefined, resume: 'budgetResumed', wait: 'budgetStillPaused' } as const;

function lineOf({ scope, spent, reserved, limit }: BudgetLimit & BudgetState, texts: ChatTexts): string {
  const [which, dollars] = [texts[budgetNames[scope]], dollarText];
  const amounts = { spent: dollars(spent), reserved: dollars(reserved), limit: dollars(limit) };
  return fillText(texts.budgetLine, { which, ...amounts });
}
