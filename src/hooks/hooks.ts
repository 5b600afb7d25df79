/**
 * Calls hooks. Deciding handlers are asked one by one, by priority, then in the order of their registration; each sees
 * what the ones before it have made of the event, and a final decision ends the round. Observing handlers are called
 * together. A synchronous endless loop in a handler can't be contained.
 */
import type { Clock } from '#contracts/clock.ts';
import type {
  DecidingHook,
  HookContext,
  HookDecision,
  HookDecisions,
  HookEvent,
  HookEvents,
  HookHandler,
  HookName,
  HookOptions,
  HookState,
  ObservingHook,
} from '#contracts/hook.ts';
import type { Log } from '#contracts/log.ts';
import { decisionRules, type FinalDecision, isDeciding, isHookName } from './hook-table.ts';

/** Result of a round of deciding handlers. */
export type Verdict<Name extends DecidingHook> = {
  /** The event with all changes. */
  readonly event: HookEvents[Name];
  /** Set if the round ended early: by a final decision, or because a handler failed that closes. */
  readonly end?: HookEnd<Name>;
};

export type HookEnd<Name extends DecidingHook> = { readonly owner: string } & (
  | { readonly kind: 'decided'; readonly decision: FinalDecision<Name> }
  | { readonly kind: 'failed' }
);

/** A handler that can't be called, and why. */
type OffHook = { readonly owner: string; readonly problem: string; readonly guard?: boolean };

/** The hooks of this process. */
export interface Hooks {
  /** Registers a handler; `owner` names its plugin or script. Returns a function that removes it. */
  on<Name extends HookName>(
    name: Name,
    handler: HookHandler<Name>,
    options: HookOptions & { readonly owner: string },
  ): () => void;
  /** Lists a handler that can't be called. A hook that closes behaves as if it failed each time. */
  setOff(name: HookName, off: OffHook): void;
  /** Says whether any handler would be called. Stages skip everything else if not. */
  has(name: HookName): boolean;
  /** Asks the handlers. Never rejects. */
  decide<Name extends Exclude<DecidingHook, 'tool_result_persist'>>(
    name: Name,
    event: HookEvents[Name],
  ): Promise<Verdict<Name>>;
  /** Asks the handlers of `tool_result_persist`. Never throws. */
  persist(event: HookEvents['tool_result_persist']): Verdict<'tool_result_persist'>;
  /** Tells the handlers. Resolves when all have ended or their time is over; never rejects. */
  observe<Name extends ObservingHook>(name: Name, event: HookEvent<Name>): Promise<void>;
  states(): readonly HookState[];
}

/** Dependencies of the registry: where it reports failures, and the time. */
export type HooksDeps = {
  readonly log: Log;
  readonly clock: Clock;
  /** Called when a handler is suspended, so that its owner learns of it. Never throws. */
  onSuspended?(hook: { readonly event: string; readonly owner: string; readonly problem: string }): void;
};

const defaultTimeoutMs = 5000;
/** A passing handler that fails this often in a row is no longer called. */
const maxFailures = 5;

type HookEntry = {
  readonly name: HookName;
  readonly owner: string;
  readonly handler: (event: never, context: HookContext) => unknown;
  readonly priority: number;
  readonly timeoutMs: number;
  readonly closes: boolean;
  calls: number;
  failures: number;
  consecutiveFailures: number;
  problem: string | undefined;
  state: HookState['state'];
};

type Answer =
  | { readonly kind: 'answered'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly problem: string };

/** Creates a registry without handlers. */
export function createHooks(deps: HooksDeps): Hooks {
  const { clock } = deps;
  const byName = new Map<HookName, readonly HookEntry[]>();
  const listed = (name: HookName) => byName.get(name) ?? [];
  const called = (name: HookName) => listed(name).filter(isCalled);
  const onFailure: OnFailure = (hook, problem) => countFailure(deps, hook, problem);
  const add = (hook: HookEntry): void => {
    const all = [...listed(hook.name), hook];
    byName.set(
      hook.name,
      all.toSorted((a, b) => b.priority - a.priority),
    );
  };
  return {
    on: (name, handler, { owner, priority = 0, timeoutMs = defaultTimeoutMs, guard = false }) => {
      assertHookName(name);
      const closes = guard || closesAtFailure(name);
      const hook = newHook({ name, owner, handler, priority, timeoutMs, closes });
      add(hook);
      return () =>
        void byName.set(
          name,
          listed(name).filter((each) => each !== hook),
        );
    },
    setOff: (name, off) => add(newOffHook(name, off)),
    has: (name) => called(name).length > 0,
    decide: async (name, event) => {
      let verdict: Verdict<typeof name> = { event };
      for (const hook of called(name)) {
        const answer = await call(hook, verdict.event, clock);
        verdict = follow(verdict, { hook, name, answer, onFailure });
        if (verdict.end !== undefined) break;
      }
      return verdict;
    },
    persist: (event) => {
      const name = 'tool_result_persist';
      let verdict: Verdict<typeof name> = { event };
      for (const hook of called(name)) {
        const answer = callNow(hook, verdict.event);
        verdict = follow(verdict, { hook, name, answer, onFailure });
        if (verdict.end !== undefined) break;
      }
      return verdict;
    },
    observe: async (name, event) => {
      const tell = async (hook: HookEntry) => {
        const answer = await call(hook, event, clock);
        if (answer.kind === 'failed') onFailure(hook, answer.problem);
        else hook.consecutiveFailures = 0;
      };
      await Promise.all(called(name).map(tell));
    },
    states: () => [...byName.values()].flat().map(stateOf),
  };
}

/** Throws unless there is such a hook. */
export function assertHookName(name: string): asserts name is HookName {
  if (!isHookName(name)) throw new RangeError(`there is no hook "${name}"; docs/hooks.md lists them`);
}

function newHook(hook: Pick<HookEntry, 'name' | 'owner' | 'handler' | 'priority' | 'timeoutMs' | 'closes'>) {
  return {
    ...hook,
    calls: 0,
    failures: 0,
    consecutiveFailures: 0,
    problem: undefined,
    state: 'active',
  } as HookEntry;
}

function newOffHook(name: HookName, { owner, problem, guard = false }: OffHook) {
  const handler = () => {
    throw new Error(problem);
  };
  const closes = guard || closesAtFailure(name);
  const hook = newHook({ name, owner, handler, priority: 0, timeoutMs: defaultTimeoutMs, closes });
  return { ...hook, state: 'off', problem } as const;
}

function closesAtFailure(name: HookName): boolean {
  return isDeciding(name) && decisionRules[name].failure === 'closes';
}

/** One that is off still closes what it was to guard. */
function isCalled({ state, closes }: HookEntry): boolean {
  return state === 'active' || (state === 'off' && closes);
}

function stateOf({ name: event, owner, state, calls, failures, problem }: HookEntry): HookState {
  return { event, owner, state, calls, failures, ...(problem !== undefined && { problem }) };
}

type OnFailure = (hook: HookEntry, problem: string) => void;

function countFailure({ log, onSuspended }: HooksDeps, hook: HookEntry, problem: string): void {
  const { name: event, owner } = hook;
  hook.failures += 1;
  hook.consecutiveFailures += 1;
  hook.problem = problem;
  log.warn({ event, owner, problem, failures: hook.failures }, 'hook.failed');
  if (hook.closes || hook.consecutiveFailures < maxFailures || hook.state !== 'active') return;
  hook.state = 'suspended';
  log.error({ event, owner, problem }, 'hook.suspended');
  onSuspended?.({ event, owner, problem });
}

type Response<Name extends DecidingHook> = {
  readonly hook: HookEntry;
  readonly name: Name;
  readonly answer: Answer;
  readonly onFailure: OnFailure;
};

/** Returns the verdict after one handler's answer; the round is over once it has an end. */
function follow<Name extends DecidingHook>(
  verdict: Verdict<Name>,
  { hook, name, answer, onFailure }: Response<Name>,
): Verdict<Name> {
  const { owner } = hook;
  const decision = answer.kind === 'failed' ? answer : parseDecision(name, answer.value);
  if (decision.kind === 'failed') {
    onFailure(hook, decision.problem);
    return hook.closes ? { ...verdict, end: { kind: 'failed', owner } } : verdict;
  }
  hook.consecutiveFailures = 0;
  if (decision.kind === 'none') return verdict;
  const event = decisionRules[name].apply(verdict.event, decision.value);
  if (event !== undefined) return { event };
  // `apply` returns no event only for these.
  const final = decision.value as HookDecisions[Name] as never as FinalDecision<Name>;
  return { ...verdict, end: { kind: 'decided', owner, decision: final } };
}

/** Calls a handler and waits for it, but not longer than its time limit. */
async function call(hook: HookEntry, event: unknown, clock: Clock): Promise<Answer> {
  hook.calls += 1;
  const over = new AbortController();
  const started = start(hook, event, over.signal);
  if (!(started instanceof Promise)) return started;
  const timer = new AbortController();
  const late = clock.wait(hook.timeoutMs, timer.signal).then((): Answer => {
    return { kind: 'failed', problem: `no answer within ${hook.timeoutMs} ms` };
  });
  // The answer of a handler whose time is over is dropped here.
  const answer = await Promise.race([started, late]);
  timer.abort();
  over.abort();
  return answer;
}

/** Calls the handler with a copy of its own: what it changes in there changes nothing else. */
function start(hook: HookEntry, event: unknown, signal: AbortSignal): Answer | Promise<Answer> {
  try {
    const value = hook.handler(structuredClone(event) as never, { signal });
    if (!isThenable(value)) return { kind: 'answered', value };
    return Promise.resolve(value).then(
      (answer): Answer => ({ kind: 'answered', value: answer }),
      (error: unknown): Answer => ({ kind: 'failed', problem: problemOf(error) }),
    );
  } catch (error) {
    return { kind: 'failed', problem: problemOf(error) };
  }
}

const neverAborted = new AbortController().signal;

/** Calls a handler that has to answer at once. */
function callNow(hook: HookEntry, event: unknown): Answer {
  hook.calls += 1;
  const answer = start(hook, event, neverAborted);
  // Its later answer is dropped.
  return answer instanceof Promise
    ? { kind: 'failed', problem: 'it returned a promise, but has to answer at once' }
    : answer;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

type ReadAnswer<Name extends DecidingHook> =
  | { readonly kind: 'none' }
  | { readonly kind: 'decision'; readonly value: HookDecision<Name> }
  | { readonly kind: 'failed'; readonly problem: string };

/** Parses a decision, as a copy that the handler can't change any more. */
function parseDecision<Name extends DecidingHook>(name: Name, value: unknown): ReadAnswer<Name> {
  if (value === undefined || value === null) return { kind: 'none' };
  try {
    const parsed = decisionRules[name].schema.safeParse(structuredClone(value));
    if (parsed.success) return { kind: 'decision', value: parsed.data as HookDecision<Name> };
  } catch {
    // It can't be copied, so it is no plain data.
  }
  return { kind: 'failed', problem: 'its answer isn’t a decision that this hook may make' };
}

function problemOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(0, 300) || 'it threw an error without a message';
}
