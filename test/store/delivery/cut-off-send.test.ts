import { expect, it } from 'vitest';
import type { Found } from '../../../src/contracts/channel-abilities.ts';
import { plainText } from '../../../src/contracts/formatted-text.ts';
import type { MessageId } from '../../../src/contracts/ids.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import type { DeliveryPolicy } from '../../../src/store/delivery/claim-delivery.ts';
import type { SendOutcome } from '../../../src/store/delivery/end-part.ts';
import { readPartStates } from '../../../src/store/delivery/tool-send.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { aConversation, aCourier, type ClaimedPart } from '../a-conversation.ts';
import { routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const leaseMs = 60_000;
/** The platform recognizes repeats for the whole test; without this, it never does. */
const recognises = { leaseMs, repeatSafeMs: 60_000 };
const searchable = { leaseMs, canLookUp: true };
const both = { leaseMs, repeatSafeMs: 60_000, canLookUp: true };

const cutOff = { kind: 'unknown', reason: 'no answer' } as const;
const arrived = { kind: 'sent', receipts: ['m1' as MessageId] } as const;
const refused = { kind: 'retry', afterMs: 0, reason: 'busy' } as const;
const found = (...ids: string[]): SendOutcome => ({
  kind: 'looked-up',
  found: { kind: 'candidates', messageIds: ids as MessageId[] },
});

describeEachDatabase('a send that was cut off', (open, beside) => {
  const aText = (text: string): OutboundContent => ({ kind: 'text', text: plainText(text) });
  const aSend = async (
    how: Partial<DeliveryPolicy>,
    { texts = ['hello'], contentOf = aText }: { texts?: string[]; contentOf?: typeof aText } = {},
  ) => {
    const { conversationKey, begin, answer } = aConversation(open());
    const folder = unique('folder');
    const run = await begin();
    const parts = texts.map((text) => ({
      route: routeFor(run),
      content: contentOf(text),
      purpose: 'reply' as const,
    }));
    await answer(run, 'hello', { parts });
    let holder = unique('boot');
    await open().write(addProcess, { id: holder, folder });
    const courier = () => aCourier(open(), conversationKey, { ...how, holder });
    const endPause = async () => {
      // The deliverer waits for pauses; here they are over.
      await beside.sql(`update outbox set "dueAt" = 0 where "conversationKey" = '${conversationKey}'`);
    };
    return {
      claim: async () => {
        await endPause();
        return courier().claimPart();
      },
      pauseSeconds: async () => {
        const next = await courier().claimNext();
        return next.kind === 'later' ? Math.round(next.delayMs / 1000) : -1;
      },
      claimNone: async () => {
        await endPause();
        return (await courier().claimNext()).kind;
      },
      settle: (claimed: ClaimedPart, result: SendOutcome) => courier().record(claimed, result),
      /** `begun`: the calls in its journal, if the journal can be read. */
      dies: async (begun?: readonly string[]) => {
        const sends = begun && [{ holder, begun }];
        holder = unique('boot');
        await open().write(addProcess, { id: holder, folder, ...(sends && { sends }) });
      },
      attempted: (times: number) =>
        beside.sql(`update outbox set attempts = ${times} where "conversationKey" = '${conversationKey}'`),
      /** As if the clock had been set back by two hours since. */
      setBack: () =>
        beside.sql(
          `update outbox set "sendingAt" = "sendingAt" + 7200000 where "conversationKey" = '${conversationKey}'`,
        ),
      states: async () =>
        (
          await open().read(readPartStates, { keys: texts.map((_, index) => `${run.runId}:${index + 1}`) })
        ).map(({ state, receipts }) => [state, ...receipts].join(' ')),
    };
  };

  it('repeats a send that was cut off while the platform recognizes the repeat', async () => {
    const sending = await aSend(recognises);
    await sending.settle(await sending.claim(), cutOff);
    expect(await sending.states()).toEqual(['pending']);
    const again = await sending.claim();
    expect([again.step, again.attempts, typeof again.mayHaveArrivedSince]).toEqual(['send', 2, 'number']);
    await sending.settle(again, arrived);
    expect(await sending.states()).toEqual(['sent m1']);
  });

  it('looks a send up instead of repeating it if the clock was set back since', async () => {
    const sending = await aSend(both);
    await sending.settle(await sending.claim(), cutOff);
    await sending.setBack();
    expect((await sending.claim()).step).toBe('look-up');
  });

  it('waits longer before each repeat of a send', async () => {
    const sending = await aSend(recognises);
    const pauses: number[] = [];
    for (let attempts = 0; attempts < 6; attempts += 1) {
      await sending.settle(await sending.claim(), cutOff);
      pauses.push(await sending.pauseSeconds());
    }
    expect(pauses).toEqual([1, 2, 4, 8, 15, 15]);
  });

  it('marks a send as unknown after ten repeats without an answer', async () => {
    const sending = await aSend(recognises);
    for (let attempts = 0; attempts < 10; attempts += 1) await sending.settle(await sending.claim(), cutOff);
    expect(await sending.claimNone()).toBe('empty');
    expect(await sending.states()).toEqual(['unknown']);
  });

  it('keeps a send ambiguous if only its repeat was refused', async () => {
    const sending = await aSend(both);
    await sending.settle(await sending.claim(), cutOff);
    await sending.settle(await sending.claim(), refused);
    const third = await sending.claim();
    expect(typeof third.mayHaveArrivedSince).toBe('number');
    await sending.settle(third, { kind: 'exhausted', reason: 'busy' });
    expect(await sending.states()).toEqual(['pending']);
  });

  it("looks a send up once repeating isn't safe, in this process and the next", async () => {
    const sending = await aSend(searchable);
    await sending.settle(await sending.claim(), cutOff);
    expect((await sending.claim()).step).toBe('look-up');
    await sending.dies();
    const looking = await sending.claim();
    expect([looking.step, looking.attempts]).toEqual(['look-up', 2]);
    await sending.settle(looking, found('m7'));
    expect(await sending.states()).toEqual(['sent m7']);
  });

  it('looks a send up even if a process died just before its lookup', async () => {
    const sending = await aSend(searchable);
    await sending.settle(await sending.claim(), cutOff);
    expect((await sending.claim()).step).toBe('look-up');
    await sending.dies([]);
    const looking = await sending.claim();
    expect([looking.step, typeof looking.mayHaveArrivedSince]).toEqual(['look-up', 'number']);
  });

  it('sends a part again if the lookup shows that it never arrived', async () => {
    const sending = await aSend(searchable);
    await sending.claim();
    await sending.dies();
    await sending.settle(await sending.claim(), found());
    const anew = await sending.claim();
    expect([anew.step, anew.mayHaveArrivedSince]).toEqual(['send', undefined]);
    await sending.settle(anew, arrived);
    expect(await sending.states()).toEqual(['sent m1']);
  });

  it('fails a part after a hundred sends that were found never to have arrived', async () => {
    const sending = await aSend(both);
    await sending.attempted(98);
    const round = async () => {
      await sending.settle(await sending.claim(), cutOff);
      const looking = await sending.claim();
      expect(looking.step).toBe('look-up');
      await sending.settle(looking, found());
      return sending.states();
    };
    expect(await round()).toEqual(['pending']);
    expect(await round()).toEqual(['failed']);
    expect(await sending.claimNone()).toBe('empty');
  });

  it('marks a change of a message as unknown after ten refused attempts', async () => {
    const contentOf = () => ({ kind: 'edit', messageId: 'm1' as MessageId, text: plainText('x') }) as const;
    const sending = await aSend(both, { contentOf });
    await sending.claim();
    await sending.dies();
    for (let attempts = 1; attempts < 10; attempts += 1)
      await sending.settle(await sending.claim(), { kind: 'exhausted', reason: 'busy' });
    expect(await sending.claimNone()).toBe('empty');
    expect(await sending.states()).toEqual(['unknown']);
  });

  it("doesn't mistake a part for another one with the same text", async () => {
    const sending = await aSend(searchable, { texts: ['same', 'same'] });
    await sending.settle(await sending.claim(), arrived);
    await sending.claim();
    await sending.dies();
    await sending.settle(await sending.claim(), found('m1', 'm2'));
    expect(await sending.states()).toEqual(['sent m1', 'sent m2']);
  });

  it("looks a send up again later if the platform can't say now", async () => {
    const sending = await aSend(searchable);
    await sending.settle(await sending.claim(), cutOff);
    const later = { kind: 'later', afterMs: 5000, reason: 'away', isOutage: true } as const;
    await sending.settle(await sending.claim(), { kind: 'looked-up', found: later });
    expect((await sending.claim()).step).toBe('look-up');
  });

  it.each<Found>([
    { kind: 'unknown', reason: 'the history is closed' },
    { kind: 'unknown', reason: 'no such ability' },
  ])("marks a send as unknown if the lookup can't tell ($reason)", async (cannotTell) => {
    const sending = await aSend(searchable);
    await sending.settle(await sending.claim(), cutOff);
    await sending.settle(await sending.claim(), { kind: 'looked-up', found: cannotTell });
    expect(await sending.states()).toEqual(['unknown']);
    expect(await sending.claimNone()).toBe('empty');
  });
});
