/** Threat 16: a sender who floods the queue delays nobody, fills no memory and is notified once. */

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { asRun } from '../e2e/as-run.ts';
import { untilAtRest, untilLedger } from '../e2e/conservation.ts';
import { startStage } from '../e2e/stage.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { TgUser } from '../platforms/telegram/types.ts';
import { isLong } from '../support/long-run.ts';

const ticks = isLong ? 600 : 60;
const perTick = isLong ? 50 : 5;
const mallory: TgUser = { id: 666, is_bot: false, first_name: 'Mallory' };
const others = [501, 502, 503].map((id): TgUser => ({ id, is_bot: false, first_name: `Person ${id}` }));

describe('one sender who floods the gateway (threat 16)', () => {
  test('delays nobody else, uses little memory and warns the sender of a flood once', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const config = { access: { dmPolicy: 'open' } };
    const { telegram, model, dataDir, parley } = await startStage({ config, env: asRun }, onTestFinished);
    const asked = new Map<string, number>();
    const delays: number[] = [];
    const gate = createGate();
    model.script((body) => {
      // Under load one call may answer two questions of one person.
      const read = JSON.stringify(body.messages);
      for (const [text, at] of asked) {
        if (!read.includes(text)) continue;
        delays.push(performance.now() - at);
        asked.delete(text);
      }
      return { text: 'yes', delayMs: 100, ...(read.includes('flood') && { hold: { gate } }) };
    });
    telegram.userSends({ from: mallory, text: 'first' });
    await telegram.waitFor(() => telegram.botMessages(mallory.id).length > 0);

    let before = 0;
    let sent = 1;
    for (let tick = 0; tick < ticks; tick++) {
      // By then everything has been used once.
      if (tick === ticks / 4) before = residentMb(parley().pid);
      for (let n = 0; n < perTick; n++) {
        telegram.userSends({ from: mallory, text: `flood ${++sent}` });
      }
      // They take turns: the long run asks more questions than one person may ask per minute.
      const from = tick % 3 === 0 ? others[(tick / 3) % others.length] : undefined;
      if (from) {
        const text = `a question of ${from.first_name}, no. ${tick}.`;
        asked.set(text, performance.now());
        telegram.userSends({ from, text });
        sent += 1;
      }
      // The rate of the flood itself.
      await pause(100);
    }
    await untilLedger(dataDir, sent);
    // Everybody else is answered while none of the flood is.
    await telegram.waitFor(() => asked.size === 0);
    gate.open();
    await untilAtRest(dataDir, sent);

    const sorted = delays.toSorted((a, b) => a - b);
    console.info(
      `19 of 20 questions beside the flood were read within ${Math.round(sorted[Math.floor(sorted.length * 0.95)] ?? 0)} ms`,
    );
    expect(sorted).toHaveLength(ticks / 3);
    expect(residentMb(parley().pid) - before).toBeLessThan(60);
    const notices = telegram
      .botMessages(mallory.id)
      .filter(({ text }) => text.startsWith('That’s too many messages'));
    expect(notices.map(({ text }) => text)).toHaveLength(1);
  });
});

function residentMb(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}
