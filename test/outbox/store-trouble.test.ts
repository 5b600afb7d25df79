import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { HostedChannel } from '../../src/contracts/channel.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { Outbound, SendResult } from '../../src/contracts/outbound.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import type { ReplyRoute } from '../../src/contracts/route.ts';
import { createDeliverer, type Deliverer } from '../../src/outbox/deliverer.ts';
import type { Store } from '../../src/store/base/command.ts';
import { conversationKeyOf } from '../../src/store/base/keys.ts';
import {
  claimDelivery,
  type DeliveryPolicy,
  recordDelivery,
} from '../../src/store/delivery/claim-delivery.ts';
import type { AnswerResult } from '../../src/store/lanes/commit-answer.ts';
import { aConversation } from '../store/a-conversation.ts';
import { holder, routeFor } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

const away = () => Promise.reject(new ParleyError('store_unavailable', 'away'));

type Fault = (attempt: number, write: () => Promise<unknown>) => Promise<unknown>;
type Answering = {
  readonly deliverer: Deliverer;
  readonly route: ReplyRoute;
  commit(sender?: DeliveryPolicy): Promise<AnswerResult>;
  states(): Promise<readonly string[]>;
};

type Scene = {
  readonly of?: string;
  /** The states that the parts end in. */
  readonly states?: readonly string[];
  readonly sendTimeoutMs?: number;
  readonly answer?: (answering: Answering) => Promise<void>;
  /** The platform's results of the first calls. */
  readonly refusals?: readonly SendResult[];
  /** Is told each step of a call. */
  readonly onStep?: (step: 'turn' | 'noted' | 'called' | 'refused') => void;
};

/**
 * Delivers a reply of two parts on a store where the commands called `of` (by default, those that record results)
 * behave as `fault` decides.
 */
async function deliverBeside(
  fault: Fault,
  {
    of = recordDelivery.name,
    states = ['sent', 'sent'],
    sendTimeoutMs = 30_000,
    answer = async ({ commit }) => void (await commit()),
    refusals = [],
    onStep = () => undefined,
  }: Scene = {},
) {
  const { store } = await aStore();
  let attempts = 0;
  const shaky: Store = {
    ...store,
    write: (command, input) => {
      const write = () => store.write(command, input);
      if (command.name !== of) return write();
      attempts += 1;
      // Resolves with the write's result, or rejects.
      return fault(attempts, write) as ReturnType<typeof write>;
    },
  };
  const { conversation, conversationKey, worker, begin } = aConversation(store);
  const run = await begin();
  const parts = ['one', 'two'].map((text) => ({
    route: routeFor(run),
    content: { kind: 'text', text: { text, spans: [{ kind: 'bold', start: 0, length: 3 }] } } as const,
    purpose: 'reply' as const,
  }));
  const commit = (sender?: DeliveryPolicy) => worker.answer(run, 'one two', { parts, sender });

  const sent: Outbound[] = [];
  let time = Date.now();
  const deliverer = createDeliverer({
    store: shaky,
    holder,
    // Each wait is longer than the lease of a delivery.
    clock: {
      ...systemClock,
      now: () => time,
      wait: async () => {
        time += 100_000;
      },
    },
    log: silentLog,
    mediaDir: '/nowhere',
    maxUploadsMb: 1,
    journal: { begin: () => onStep('noted'), end: () => undefined },
    probe: noProbe,
    // The deliverer reads nothing else of a channel.
    adapterFor: () =>
      ({
        definition: { capabilities: { repeatSafeMs: 0 } },
        pace: { turn: async () => onStep('turn') === undefined, refused: () => onStep('refused') },
        adapter: {
          send: async (part: Outbound) => {
            onStep('called');
            sent.push(part);
            return refusals[sent.length - 1] ?? { kind: 'sent', receipts: [] };
          },
        },
      }) as unknown as HostedChannel,
    settings: { retries: 3, minBackoffMs: 1, maxBackoffMs: 1, sendTimeoutMs, resendUnknown: false },
    onSettled: () => undefined,
  });
  const readStates = () => stateOf(store, conversation);
  await answer({ deliverer, route: routeFor(run), commit, states: readStates });
  deliverer.deliver(conversationKey);
  await vi.waitFor(async () => expect(await readStates()).toEqual(states));
  await deliverer.stop();
  return { attempts, sent: sent.length };
}

it("keeps the platform's answer until the store is back, however long that takes", async () => {
  const outcome = await deliverBeside((attempt, write) => (attempt <= 3 ? away() : write()));
  expect(outcome).toEqual({ attempts: 5, sent: 2 });
});

it('sends the next part if the store claimed it but its answer was lost', async () => {
  const outcome = await deliverBeside((attempt, write) => (attempt === 1 ? write().then(away) : write()));
  expect(outcome).toEqual({ attempts: 3, sent: 2 });
});

it("repairs a part once, even if the store's answer was lost", async () => {
  const lost: Fault = (attempt, write) => (attempt === 1 ? write().then(away) : write());
  const refusals = [{ kind: 'failed', failure: { kind: 'markup' }, reason: 'no such markup' }] as const;
  expect(await deliverBeside(lost, { refusals })).toEqual({ attempts: 4, sent: 3 });
});

it('waits for its turn before a call may have started, and tells when the platform asks for a wait', async () => {
  const steps: string[] = [];
  const refusals = [{ kind: 'retry', afterMs: 1_000, reason: 'too many' }] as const;
  await deliverBeside((_, write) => write(), { refusals, onStep: (step) => void steps.push(step) });
  const call = ['turn', 'noted', 'called'];
  expect(steps).toEqual([...call, 'refused', ...call, ...call]);
});

it('claims no part with a commit while it delivers in the same conversation', async () => {
  const senders: (DeliveryPolicy | undefined)[] = [];
  const note = async (sender?: DeliveryPolicy) => void senders.push(sender);
  const answer = async ({ deliverer, route, commit }: Answering) => {
    await deliverer.claimAlong(route, note);
    await commit();
    deliverer.deliver(conversationKeyOf(route));
    await deliverer.claimAlong(route, note);
  };
  await deliverBeside((_, write) => write(), { answer });
  expect(senders).toEqual([expect.objectContaining({ holder }), undefined]);
});

it('claims once for all requests that come before the claim', async () => {
  const answer = async ({ deliverer, route, commit }: Answering) => {
    await commit();
    deliverer.deliver(conversationKeyOf(route));
    deliverer.deliver(conversationKeyOf(route));
  };
  const outcome = await deliverBeside((_, write) => write(), { of: claimDelivery.name, answer });
  expect(outcome).toEqual({ attempts: 1, sent: 2 });
});

it('claims again for a request that comes after the claim', async () => {
  let put = async () => {};
  const late: Fault = async (attempt, write) => {
    const found = await write();
    if (attempt === 1) await put();
    return found;
  };
  const answer = async ({ deliverer, route, commit }: Answering) => {
    put = async () => {
      await commit();
      deliverer.deliver(conversationKeyOf(route));
    };
  };
  const outcome = await deliverBeside(late, { of: claimDelivery.name, answer });
  expect(outcome).toEqual({ attempts: 2, sent: 2 });
});

it('claims again if the answer of the store was lost, while the claim still holds', async () => {
  const lost: Fault = (attempt, write) => (attempt === 1 ? write().then(away) : write());
  expect(await deliverBeside(lost, { of: claimDelivery.name })).toMatchObject({ sent: 2 });
});

it('sends nothing twice whose result could not be recorded', async () => {
  const fault = () => Promise.reject(new ParleyError('internal', 'refused'));
  const broken: Fault = (attempt, write) => (attempt === 1 ? fault() : write());
  // Its claim expires soon, and the next claim finds that the call had begun.
  const outcome = await deliverBeside(broken, { states: ['unknown', 'sent'], sendTimeoutMs: 100 });
  expect(outcome.sent).toBe(2);
});

it('sends what the commit of an answer has claimed, even if its answer was lost', async () => {
  const answer = async ({ deliverer, route, commit }: Answering) => {
    const answered = deliverer.claimAlong(route, (sender) => commit(sender).then(away));
    await expect(answered).rejects.toThrow('away');
  };
  expect(await deliverBeside((_, write) => write(), { answer })).toMatchObject({ sent: 2 });
});

it('records the claimed part before it stops, and claims nothing more', async () => {
  const stopping = Promise.withResolvers<void>();
  const late: Fault = async (attempt, write) => {
    if (attempt === 1) await stopping.promise;
    return write();
  };
  const answer = async ({ deliverer, route, commit, states }: Answering) => {
    const { claimed } = await deliverer.claimAlong(route, (sender) => {
      deliverer.deliver(conversationKeyOf(route));
      return commit(sender);
    });
    if (claimed) await deliverer.continueFrom(claimed);
    const stopped = deliverer.stop();
    stopping.resolve();
    await stopped;
    expect(await states()).toEqual(['sent', 'pending']);
  };
  await deliverBeside(late, { of: claimDelivery.name, states: ['sent', 'pending'], answer });
});

function stateOf(store: Store, conversation: string) {
  return store.read(
    {
      query: 'stateOf',
      run: async (tx, key: string) => {
        const rows = await tx.db
          .selectFrom('outbox')
          .select('state')
          .where('conversationKey', '=', key)
          .orderBy('place')
          .execute();
        return rows.map(({ state }) => state);
      },
    },
    `test/bot/${conversation}`,
  );
}
