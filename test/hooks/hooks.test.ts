import { describe, expect, it } from 'vitest';
import type { DecidingHook, HookEvent, HookName, HookOptions, ObservingHook } from '#contracts/hook.ts';
import { createHooks, type Hooks, type Verdict } from '../../src/hooks/hooks.ts';
import { recordingLog } from '../support/silent-log.ts';
import { createSteppedClock, turns } from '../support/stepped-clock.ts';
import { decidingCases, observedEvents } from './some-events.ts';

type Suspended = { readonly event: string; readonly owner: string };

function someHooks() {
  const clock = createSteppedClock();
  const suspended: Suspended[] = [];
  const { log, lines } = recordingLog();
  const onSuspended = ({ event, owner }: Suspended) => void suspended.push({ event, owner });
  const hooks = createHooks({ log, clock, onSuspended });
  /** Registers a handler without the types, as a script or a plugin in plain JavaScript does. */
  const on = (
    name: HookName,
    handler: (event: never) => unknown,
    options: HookOptions & { readonly owner?: string } = {},
  ) => hooks.on(name, handler as never, { owner: 'one', ...options });
  return { hooks, clock, suspended, lines, on };
}

/** Asks a deciding hook of either kind. */
async function ask<Name extends DecidingHook>(hooks: Hooks, name: Name): Promise<Verdict<Name>> {
  const { event } = decidingCases[name];
  if (name === 'tool_result_persist') return hooks.persist(event as never) as never;
  return hooks.decide(name as 'before_tool_call', event as never) as never;
}

const deciding = Object.keys(decidingCases) as DecidingHook[];
const promised = deciding.filter((name) => name !== 'tool_result_persist');
const observing = Object.keys(observedEvents) as ObservingHook[];
const closing = deciding.filter((name) => decidingCases[name].closes);
const passing = deciding.filter((name) => !decidingCases[name].closes);

describe.each(deciding)('the hook %s', (name) => {
  const { event, change, final, wrong, closes } = decidingCases[name];
  const failed = (owner = 'one') => ({ event, end: { kind: 'failed', owner } });

  it('sees the event, and changes nothing without a decision', async () => {
    const { hooks, on } = someHooks();
    const seen: unknown[] = [];
    on(name, (shown) => void seen.push(shown));
    expect(await ask(hooks, name)).toEqual({ event });
    expect(seen).toEqual([event]);
  });

  it.runIf(change)('shows a change to the next handler, by priority and then in order', async () => {
    const { hooks, on } = someHooks();
    const seen: [string, unknown][] = [];
    on(name, (shown) => void seen.push(['last', shown]), { priority: -1 });
    on(name, (shown) => void seen.push(['second', shown]));
    on(name, () => change?.decision, { priority: 3 });
    on(name, (shown) => void seen.push(['third', shown]));
    const { event: changed, end } = await ask(hooks, name);
    expect(seen.map(([who]) => who)).toEqual(['second', 'third', 'last']);
    for (const shown of [...seen.map(([, each]) => each), changed])
      expect(shown).toMatchObject(change?.shows ?? {});
    expect(end).toBeUndefined();
  });

  it.runIf(final)('ends the round with a final decision, which nothing later clears', async () => {
    const { hooks, on } = someHooks();
    let later = 0;
    on(name, () => final);
    on(name, () => {
      later += 1;
      return change?.decision;
    });
    expect(await ask(hooks, name)).toEqual({
      event,
      end: { kind: 'decided', owner: 'one', decision: final },
    });
    expect(later).toBe(0);
  });

  it('gives each handler a copy, so that changing it in place has no effect', async () => {
    const { hooks, on } = someHooks();
    const before = structuredClone(event);
    on(name, (shown: Record<string, unknown>) => {
      for (const key of Object.keys(shown)) shown[key] = 'changed in place';
    });
    expect(await ask(hooks, name)).toEqual({ event: before });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('no idea'))],
    ['answers in another form', () => wrong],
    ['answers with something else than data', () => ({ kind: 'rewrite', text: () => 'x' })],
  ] as const)(`${closes ? 'closes' : 'passes'} if a handler %s`, async (_, handler) => {
    const { hooks, on } = someHooks();
    on(name, handler);
    expect(await ask(hooks, name)).toEqual(closes ? failed() : { event });
    expect(hooks.states()).toMatchObject([{ event: name, owner: 'one', calls: 1, failures: 1 }]);
  });
});

describe.each(promised)('a slow handler of %s', (name) => {
  const { event, change, final, closes } = decidingCases[name];

  it(`${closes ? 'closes' : 'passes'} when its time is over, and its late answer is dropped`, async () => {
    const { hooks, on, clock } = someHooks();
    const late = Promise.withResolvers<unknown>();
    let isAborted = false;
    hooks.on(
      name,
      ((_: unknown, { signal }: { signal: AbortSignal }) => {
        signal.addEventListener('abort', () => {
          isAborted = true;
        });
        return late.promise;
      }) as never,
      { owner: 'slow', timeoutMs: 700 },
    );
    on(name, () => undefined);
    const verdict = ask(hooks, name);
    await clock.advance(700);
    expect(await verdict).toEqual(closes ? { event, end: { kind: 'failed', owner: 'slow' } } : { event });
    expect(isAborted).toBe(true);
    late.resolve(final ?? change?.decision);
    await turns();
    const [slow] = hooks.states();
    expect(slow).toMatchObject({ owner: 'slow', failures: 1, problem: 'no answer within 700 ms' });
  });
});

describe.each(observing)('the hook %s', (name) => {
  const event = observedEvents[name] as HookEvent<ObservingHook>;

  it('tells all handlers at once, whatever one of them does', async () => {
    const { hooks, on, clock } = someHooks();
    const seen: unknown[] = [];
    on(name, () => new Promise(() => undefined), { timeoutMs: 50 });
    on(name, () => Promise.reject(new Error('no')));
    on(name, (shown) => void seen.push(shown));
    const told = hooks.observe(name, event);
    await turns();
    expect(seen).toEqual([event]);
    await clock.advance(50);
    await told;
    expect(hooks.states().map(({ failures }) => failures)).toEqual([1, 1, 0]);
  });
});

describe('hooks', () => {
  it.each([...passing, ...observing])(
    'suspends a handler of %s after five failures in a row',
    async (name) => {
      const { hooks, on, suspended } = someHooks();
      let calls = 0;
      on(name, () => {
        calls += 1;
        throw new Error('broken');
      });
      for (let round = 0; round < 7; round += 1) await call(hooks, name);
      expect(calls).toBe(5);
      expect(suspended).toEqual([{ event: name, owner: 'one' }]);
      expect(hooks.states()).toMatchObject([
        { state: 'suspended', calls: 5, failures: 5, problem: 'broken' },
      ]);
      expect(hooks.has(name)).toBe(false);
    },
  );

  it.each(closing)('never suspends a handler of %s, which would open what it guards', async (name) => {
    const { hooks, on } = someHooks();
    on(name, () => {
      throw new Error('broken');
    });
    for (let round = 0; round < 7; round += 1)
      expect(await ask(hooks, name)).toMatchObject({ end: { kind: 'failed', owner: 'one' } });
  });

  it('starts counting again after an answer', async () => {
    const { hooks, on } = someHooks();
    let calls = 0;
    on('gateway_stop', () => {
      calls += 1;
      if (calls % 5 !== 0) throw new Error('broken');
    });
    for (let round = 0; round < 12; round += 1) await hooks.observe('gateway_stop', {});
    expect(calls).toBe(12);
  });

  it('blocks a message if a guard fails, however often', async () => {
    const { hooks, on } = someHooks();
    on('message_sending', () => Promise.reject(new Error('no')), { guard: true });
    for (let round = 0; round < 7; round += 1)
      expect(await ask(hooks, 'message_sending')).toMatchObject({ end: { kind: 'failed', owner: 'one' } });
  });

  it('keeps asking for a person once a handler has asked, and lets a later one block', async () => {
    const { hooks, on } = someHooks();
    on('before_tool_call', () => ({ kind: 'ask' }));
    on('before_tool_call', () => ({ kind: 'rewrite', input: { path: 'b' } }));
    expect(await ask(hooks, 'before_tool_call')).toMatchObject({
      event: { isAsked: true, input: { path: 'b' } },
    });
    on('before_tool_call', () => ({ kind: 'block', reason: 'no' }));
    expect(await ask(hooks, 'before_tool_call')).toMatchObject({ end: { kind: 'decided' } });
  });

  it('keeps a decision as it was made, whatever the handler does to it later', async () => {
    const { hooks, on } = someHooks();
    const input = { place: { path: 'b' } };
    on('before_tool_call', () => ({ kind: 'rewrite', input }));
    const { event } = await ask(hooks, 'before_tool_call');
    input.place.path = '/etc/passwd';
    expect(event.input).toEqual({ place: { path: 'b' } });
  });

  it('counts a promise of tool_result_persist as a failure', async () => {
    const { hooks, on } = someHooks();
    on('tool_result_persist', async () => ({ kind: 'rewrite', text: 'late' }));
    expect(await ask(hooks, 'tool_result_persist')).toMatchObject({ end: { kind: 'failed' } });
  });

  it('closes what a handler that can’t be called was to guard, and lists it', async () => {
    const { hooks } = someHooks();
    hooks.setOff('before_tool_call', { owner: 'guard.sh', problem: 'guard.sh has changed' });
    hooks.setOff('message_sent', { owner: 'log.sh', problem: 'log.sh has changed' });
    expect(hooks.has('message_sent')).toBe(false);
    expect(await ask(hooks, 'before_tool_call')).toMatchObject({
      end: { kind: 'failed', owner: 'guard.sh' },
    });
    expect(hooks.states()).toMatchObject([
      { owner: 'guard.sh', state: 'off', problem: 'guard.sh has changed' },
      { owner: 'log.sh', state: 'off', problem: 'log.sh has changed' },
    ]);
  });

  it('calls no handler after its removal', async () => {
    const { hooks, on } = someHooks();
    const remove = on('before_tool_call', () => ({ kind: 'block', reason: 'no' }));
    remove();
    expect(hooks.has('before_tool_call')).toBe(false);
    expect((await ask(hooks, 'before_tool_call')).end).toBeUndefined();
  });

  it('refuses a hook that doesn’t exist', () => {
    const { on } = someHooks();
    expect(() => on('before_lunch' as HookName, () => undefined)).toThrow('there is no hook "before_lunch"');
  });
});

async function call(hooks: Hooks, name: HookName): Promise<void> {
  if (name in decidingCases) await ask(hooks, name as DecidingHook);
  else
    await hooks.observe(
      name as ObservingHook,
      observedEvents[name as ObservingHook] as HookEvent<ObservingHook>,
    );
}
