/** Everything that a network can do to us, on each of them: `networks/` has the controls for it. */

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import { isLong } from '../support/long-run.ts';
import { patienceMs } from '../support/patience.ts';
import { shareOf } from '../support/turn.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { crowdOf, forCrowd, gatherCrowd } from './crowd.ts';
import { discordNetwork } from './networks/discord.ts';
import type { Hands, Network } from './networks/network.ts';
import { polledSignalNetwork, signalNetwork } from './networks/signal.ts';
import { telegramNetwork } from './networks/telegram.ts';
import { channelShown } from './page-state.ts';
import type { Person } from './person.ts';
import { type Config, openStage, type Stage, startStage } from './stage.ts';
import { telegramState } from './telegram-chat.ts';
import { until } from './until.ts';

// They spend more time waiting than working.
vi.setConfig({ maxConcurrency: 8 });

const awayMs = isLong ? 30_000 : 5_000;
const inTime = <T extends { readonly isInLongRunsOnly?: boolean }>(all: readonly T[]) =>
  all.filter((one) => isLong || !one.isInLongRunsOnly);

const networks: readonly Network[] = [
  telegramNetwork,
  discordNetwork,
  signalNetwork,
  ...(isLong ? [polledSignalNetwork] : []),
];

/** `settings`: those of the network itself. */
function openAlone({ part, channel }: Network, config: Config, settings: Config = {}): Promise<Stage> {
  return openStage({ config: { channels: { [channel]: settings }, ...config }, networks: [part] });
}

/** Keeps what a failed test leaves: nobody can make a race happen again. */
function closeOf(stage: Stage) {
  return async ({ task }: TestContext) => {
    const isKept = task.result?.state === 'fail';
    if (isKept) console.error(`${task.name}: see ${stage.dataDir}`);
    await stage.close({ isKept });
  };
}

function peopleOn(stage: Stage, { channel }: Network, count: number, firstId = 1001): readonly Person[] {
  return Array.from({ length: count }, (_, index) => stage.person(channel, firstId + index));
}

function untilAnswered(crowd: ReturnType<typeof crowdOf>, count: number): Promise<void> {
  return until(() => crowd.answered() >= count, { what: `${count} answers` });
}

// Only the message itself and the part that answers it have the text in their content.
const fateOf = `select outcome, outcomeReason as reason, outbox.state from inbox
  left join outbox on outbox.runId = inbox.runId and outbox.purpose = 'reply' where inbox.content like ?`;

describe.concurrent.for(networks)('faults of $name', (network) => {
  describe('in a running process', { concurrent: false }, () => {
    let stage: Stage;
    let hands: Hands;
    let nextId = 2001;
    const somebody = () => stage.person(network.channel, nextId++);
    const events = () => Number(readStore(stage.dataDir, 'select count(*) as events from ledger')[0]?.events);

    beforeAll(async () => {
      stage = await openAlone(network, forCrowd, { callTimeoutMs: 6000 });
      hands = network.handsOf(stage);
      await stage.start();
    });
    afterAll(() => stage.close());

    for (const fault of inTime(network.sendFaults))
      test(`loses and doubles nothing when ${network.name} ${fault.what}`, async () => {
        const { dataDir } = stage;
        const [before, person] = [events(), somebody()];
        const text = `One, while it ${fault.what}.`;
        const answer = `You said: ${text}`;
        fault.arm(stage);
        person.says(text);
        if (fault.lift) {
          await until(() => hands.callsWith(answer) === 1, { what: 'a first try' });
          await fault.lift(stage);
        }
        await untilAtRest(dataDir, before + 1, fault.isInLongRunsOnly ? 200_000 : patienceMs);
        const end = {
          sent: { outcome: 'answered', reason: null },
          unknown: { outcome: 'answered', reason: 'delivery unknown' },
          failed: { outcome: 'failed', reason: 'delivery failed' },
        }[fault.fate];
        expect(readStore(dataDir, fateOf, `%${text}%`)).toEqual([{ ...end, state: fault.fate }]);
        person.says('Two.');
        await untilAtRest(dataDir, before + 2);
        const [later] = person.standing().slice(fault.stands);
        expect(later).toMatch(
          fault.fate !== 'sent' ? /\[Note from the gateway\][\s\S]*Two\.$/ : /^You said: Two\.$/,
        );
        expect(person.standing().filter((one) => one === answer)).toHaveLength(fault.stands);
        expect(hands.callsWith(answer)).toBe(fault.calls);
        expect(findBreaches(dataDir)).toEqual([]);
      });

    test('loses and doubles nothing when every connection is cut repeatedly', {
      timeout: 300_000,
    }, async () => {
      const { dataDir, model } = stage;
      const before = events();
      const crowd = crowdOf([somebody(), somebody()], 'Cut');
      for (const [round, cut] of network.cuts.entries()) {
        const gate = createGate();
        const asked = model.requests.length;
        model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
        crowd.speaks();
        await model.waitForRequest(asked + 2);
        await cut(stage);
        crowd.speaks();
        gate.open();
        await untilAtRest(dataDir, before + 4 * (round + 1));
      }
      model.script((body) => ({ text: `You said: ${lastUserText(body)}` }));
      expect(crowd.breaches(dataDir)).toEqual([]);
    });

    test('answers although typing, drafts and receipts are refused', {
      timeout: 300_000,
    }, async () => {
      const before = events();
      const crowd = crowdOf([somebody(), somebody()], 'Patient');
      const previews = hands.refuseSignsOfLife();
      stage.model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], chunkDelayMs: 500 }));
      crowd.speaks();
      await untilAtRest(stage.dataDir, before + 2);
      stage.model.script((body) => ({ text: `You said: ${lastUserText(body)}` }));
      expect(crowd.breaches(stage.dataDir)).toEqual([]);
      expect(previews()).toBeLessThanOrEqual(2);
    });

    test('answers a message whose file is refused, and tells its sender about the file', async () => {
      const [before, asked] = [events(), stage.model.requests.length];
      const id = nextId++;
      const person = stage.person(network.channel, id);
      hands.sendsLostFile(id, 'Read this.');
      await untilAtRest(stage.dataDir, before + 1);
      expect(person.standing()).toEqual([
        expect.stringMatching(/^I couldn’t read “plan\.pdf” \(.+\)\.$/),
        expect.stringMatching(/^You said: Read this\.\n\[attachment plan\.pdf is missing: /),
      ]);
      expect(stage.model.requests).toHaveLength(asked + 1);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    });

    test('keeps unreadable events raw, and they delay nobody', async () => {
      const { dataDir } = stage;
      const before = events();
      const crowd = crowdOf([somebody(), somebody(), somebody()], 'Reader');
      crowd.speaks();
      const marks = await hands.sendsPoison();
      crowd.speaks();
      await untilAnswered(crowd, 6);
      await untilAtRest(dataDir, before + 6 + marks.length);
      const refused = readStore(dataDir, `select reason, raw from ledger where outcome = 'refused'`);
      expect(refused.map(({ reason }) => reason)).toEqual(marks.map(() => 'unreadable'));
      for (const mark of marks)
        expect([mark, refused.filter(({ raw }) => String(raw).includes(mark)).length]).toEqual([mark, 1]);
      expect(crowd.breaches(dataDir)).toEqual([]);
    });
  });
});

// These run alongside the rows above, not after them. Each starts its own gateways, so one network a day is tested.
describe.concurrent.for(shareOf(networks, 3))('faults of $name', (network) => {
  const { outages, renewToken } = network;
  const troubles = inTime(outages).map(({ what }) => what);
  test(`answers everybody once after ${network.name} ${troubles.join(' and ')} for ${awayMs / 1000} s`, {
    timeout: outages.length * (awayMs + 60_000) + 60_000,
  }, async ({ expect, onTestFinished }) => {
    const stage = await openAlone(network, forCrowd);
    onTestFinished(closeOf(stage));
    const { model, dataDir } = stage;
    const { url } = await stage.start();
    const crowd = crowdOf(peopleOn(stage, network, 5));
    for (const { begin, end } of inTime(outages)) {
      const [answered, asked] = [crowd.answered(), model.requests.length];
      const gate = createGate();
      model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
      crowd.speaks();
      await model.waitForRequest(asked + 5);
      await begin(stage);
      // Once the page answers, Parley has noticed the dead connections: a send over one of them would be `unknown`.
      await channelShown(url, network.channel);
      gate.open();
      const open = `select state, problem is not null as isTried from outbox
        where purpose = 'reply' and state <> 'sent'`;
      const waiting = Array.from({ length: 5 }, () => ({ state: 'pending', isTried: 1 }));
      await expect.poll(() => readStore(dataDir, open)).toEqual(waiting);
      crowd.speaks();
      // The length of the outage is the fault itself.
      await pause(awayMs);
      expect(crowd.answered()).toBe(answered);
      await end(stage);
      await untilAtRest(dataDir, crowd.count());
    }
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test(`answers 200 messages at once${network.whileDown === 'kept' ? ', written while Parley was dead' : ''}`, {
    timeout: 300_000,
  }, async ({ onTestFinished }) => {
    const stage = await openAlone(network, {
      access: { dmPolicy: 'open' },
      queue: { dm: { mode: 'collect', cap: 200 } },
    });
    onTestFinished(closeOf(stage));
    const { dataDir } = stage;
    const people = peopleOn(stage, network, 20);
    const crowd = crowdOf(people);
    const parley = await stage.start();
    crowd.speaks();
    await untilAtRest(dataDir, 20);
    if (network.whileDown === 'kept') {
      await parley.kill();
      await network.untilLeft?.(stage);
    }
    const texts = Array.from({ length: 10 }, (_, nth) =>
      people.map((person, index) => ({ person, text: `Number ${nth} of person ${index}.` })),
    ).flat();
    for (const { person, text } of texts) person.says(text);
    if (network.whileDown === 'kept') await stage.start();
    await untilAtRest(dataDir, 220);
    const told = countTold(
      dataDir,
      texts.map(({ text }) => text),
    );
    expect(texts.filter((_, index) => told[index] !== 1)).toEqual([]);
    const unanswered = texts.filter(
      ({ person, text }) => person.standing().filter((answer) => answer.includes(text)).length !== 1,
    );
    expect(unanswered).toEqual([]);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  const change = renewToken === undefined ? '' : ' with another token';
  test(`answers once although ${network.name} delivers twice, out of order, and again after a restart${change}`, {
    timeout: 300_000,
  }, async ({ onTestFinished }) => {
    const stage = await openAlone(network, forCrowd);
    onTestFinished(closeOf(stage));
    const { dataDir } = stage;
    const hands = network.handsOf(stage);
    const crowd = crowdOf(peopleOn(stage, network, 6));
    const first = await stage.start();
    hands.inDisorder(() => crowd.speaks());
    hands.redeliver(6);
    await untilAnswered(crowd, 6);
    hands.redeliver(6);
    crowd.speaks();
    await untilAtRest(dataDir, 12);
    await renewToken?.(stage);
    if (renewToken !== undefined) {
      const isRefused = async () => (await channelShown(first.url, network.channel)).state === 'trouble';
      await until(isRefused, { what: 'the refusal on show' });
      crowd.speaks();
    }
    await first.stop();
    const [{ begin, end, shown }] = outages;
    await begin(stage);
    crowd.speaks();
    const { url } = await stage.start();
    const { state, detail } = await channelShown(url, network.channel);
    expect([state, detail]).toEqual(['trouble', expect.stringMatching(shown)]);
    await end(stage);
    hands.redeliver(12);
    hands.inDisorder(() => crowd.speaks());
    await untilAtRest(dataDir, crowd.count());
    expect(crowd.breaches(dataDir)).toEqual([]);
    expect(readStore(dataDir, 'select 1 from ledger')).toHaveLength(crowd.count());
  });
});

test.concurrent('reports a second poller on the same Telegram bot as a conflict and loses nothing', {
  timeout: 300_000,
}, async ({ onTestFinished }) => {
  const { telegram, dataDir, parley } = await startStage({ config: forCrowd }, onTestFinished);
  const crowd = gatherCrowd(telegram, 3);
  const poller = startSecondPoller(telegram);
  crowd.speaks();
  await telegram.waitFor(() => telegram.calls.some(({ status }) => status === 409));
  await until(async () => (await telegramState(parley().url)).state === 'trouble', {
    what: 'the conflict on show',
  });
  expect((await telegramState(parley().url)).detail).toMatch(/terminated by other getUpdates request/);
  await poller.stop();
  await until(async () => (await telegramState(parley().url)).state === 'on', {
    what: 'the end of the conflict',
  });
  crowd.speaks();
  await untilAtRest(dataDir, 6);
  expect(crowd.breaches(dataDir)).toEqual([]);
});

/** Another program with the same token, which polls over and over and confirms nothing. */
function startSecondPoller(telegram: TelegramServer): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = async () => {
    while (!signal.aborted) {
      await fetch(`${telegram.apiRoot}/bot${telegram.token}/getUpdates?timeout=5`, { signal })
        .then((answer) => answer.text())
        .catch(() => undefined);
    }
  };
  const running = loop();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}
