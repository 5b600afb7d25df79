import { setImmediate } from 'node:timers/promises';
import { expect } from 'vitest';
import { checksOf } from './check.ts';

export const stoppingChecks = checksOf('stopping', {
  'hands over nothing after stop, which can be called twice': async (trial) => {
    const { harness, intake } = trial;
    await trial.begin();
    await harness.personSays('heard');
    await trial.untilTexts(1);
    await trial.adapter.stop();
    await trial.adapter.stop();
    const { attempts } = intake;
    await harness.personSays('unheard');
    await trial.staysTrue(() => intake.attempts === attempts);
  },

  'ends a start that is told to stop before it is complete': async (trial) => {
    const { harness, adapter, intake } = trial;
    await adapter.identify(trial.signal);
    for (const turns of [0, 1, 3, 9]) {
      const starting = adapter.start(intake);
      for (let turn = 0; turn < turns; turn += 1) await setImmediate();
      await Promise.all([starting, adapter.stop()]);
      const { attempts } = intake;
      await harness.personSays('unheard');
      await trial.staysTrue(() => intake.attempts === attempts);
    }
    await adapter.start(intake);
    await harness.personSays('heard');
    await intake.waitFor(() => intake.texts.includes('heard'));
  },

  'can be stopped before it was started': async ({ adapter }) => {
    await expect(adapter.stop()).resolves.toBeUndefined();
  },

  'receives again after a second start': async (trial) => {
    const { harness, intake } = trial;
    await trial.begin();
    await harness.personSays('first');
    await trial.untilTexts(1);
    await trial.adapter.stop();
    await trial.adapter.start(intake);
    await harness.personSays('second');
    await intake.waitFor(() => intake.texts.includes('second'));
    expect(intake.texts).toEqual(['first', 'second']);
  },

  'keeps sending after it stopped receiving': async (trial) => {
    await trial.begin();
    await trial.harness.personSays('hi');
    await trial.untilTexts(1);
    await trial.adapter.stop();
    trial.receiptOf(await trial.sendText('still here'));
  },
});
