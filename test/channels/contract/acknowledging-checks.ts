import { expect } from 'vitest';
import { checksOf } from './check.ts';
import type { Trial } from './trial.ts';

/** Requires a platform that keeps events, itself or in a history, at least until one of our processes stores them. */
function needsMemory({ harness, only }: Trial): void {
  only(harness.unacknowledged !== undefined || harness.history !== undefined);
}

export const acknowledgingChecks = checksOf('acknowledging', {
  'acknowledges an event only after intake has stored it': async (trial) => {
    const { harness, intake } = trial;
    const unacknowledged = trial.need(harness.unacknowledged);
    await trial.begin();
    const release = intake.hold();
    await harness.personSays('wait for it');
    await intake.waitFor(() => intake.attempts > 0);
    await trial.staysTrue(() => unacknowledged() === 1);
    release();
    await trial.untilTexts(1);
    await trial.until(() => unacknowledged() === 0, 'what is stored is acknowledged');
  },

  'hands an event over again that the store could not take': async (trial) => {
    const { harness, intake } = trial;
    await trial.begin();
    intake.failNext('store_unavailable', 2);
    await harness.personSays('third time lucky');
    await trial.untilTexts(1);
    expect(intake.texts).toEqual(['third time lucky']);
    expect(intake.attempts).toBeGreaterThanOrEqual(3);
  },

  'leaves an event that was not stored to the next process': async (trial) => {
    const { harness, intake } = trial;
    needsMemory(trial);
    await trial.begin();
    await harness.personSays('known');
    await trial.untilTexts(1);
    intake.failNext('store_unavailable', 1_000_000);
    const before = intake.attempts;
    await harness.personSays('survives');
    await intake.waitFor(() => intake.attempts >= before + 3);
    await trial.restart();
    await trial.untilTexts(2);
    expect(trial.intake.texts).toEqual(['known', 'survives']);
  },

  'misses nothing that was written between two processes': async (trial) => {
    const { harness } = trial;
    needsMemory(trial);
    await trial.begin();
    await harness.personSays('before');
    await trial.untilTexts(1);
    await trial.restart(() => harness.personSays('between'));
    await harness.personSays('after');
    await trial.untilTexts(3);
    expect(trial.intake.texts).toEqual(['before', 'between', 'after']);
  },

  'stops receiving when another process owns the account': async (trial) => {
    const { harness, intake } = trial;
    const unacknowledged = trial.need(harness.unacknowledged);
    await trial.begin();
    intake.failNext('stale_epoch');
    await harness.personSays('not for me');
    await intake.waitFor(() => intake.attempts === 1);
    await harness.personSays('nor this');
    await trial.staysTrue(() => intake.attempts === 1);
    await trial.adapter.stop();
    expect(intake.attempts).toBe(1);
    expect(unacknowledged()).toBe(2);
  },
});

export const gapChecks = checksOf('missed messages', {
  'reports lost events with a reason': async (trial) => {
    const { intake } = trial;
    const loseEvents = trial.need(trial.harness.losesEvents);
    await trial.begin();
    await trial.harness.personSays('kept');
    await trial.untilTexts(1);
    await loseEvents();
    const gap = await intake.waitFor(() => intake.gaps[0]);
    expect(gap.reason).not.toBe('');
    await trial.harness.personSays('goes on');
    await trial.untilTexts(2);
  },

  'fetches messages that were written while the connection was interrupted': async (trial) => {
    const { harness } = trial;
    const history = trial.need(harness.history);
    await trial.begin();
    await harness.personSays('heard');
    await trial.untilTexts(1);
    await history.interrupt(async () => {
      await harness.personSays('unheard');
      await harness.personSays('unheard too');
    });
    await trial.untilTexts(3);
    expect(trial.intake.texts).toEqual(['heard', 'unheard', 'unheard too']);
  },

  'stores missed messages before new ones': async (trial) => {
    const { harness } = trial;
    const history = trial.need(harness.history);
    await trial.begin();
    await harness.personSays('known');
    await trial.untilTexts(1);
    const held = history.hold();
    const restarted = trial.restart(() => harness.personSays('missed'));
    await held.asked;
    await harness.personSays('new');
    held.release();
    await restarted;
    await trial.untilTexts(3);
    expect(trial.intake.texts).toEqual(['known', 'missed', 'new']);
  },

  'moves an anchor only over messages that are stored': async (trial) => {
    const { harness, intake } = trial;
    trial.need(harness.history);
    await trial.begin();
    await harness.personSays('known');
    await trial.untilTexts(1);
    await intake.waitFor(() => intake.anchors.size > 0);
    intake.failNext('store_unavailable', 1_000_000);
    const { attempts } = intake;
    const anchors = new Map(intake.anchors);
    await harness.personSays('not stored');
    await intake.waitFor(() => intake.attempts >= attempts + 2);
    expect(new Map(intake.anchors)).toEqual(anchors);
    await trial.restart();
    await trial.untilTexts(2);
    expect(trial.intake.texts).toEqual(['known', 'not stored']);
  },

  'reports a conversation whose missed messages cannot be fetched, and continues': async (trial) => {
    const { harness } = trial;
    const history = trial.need(harness.history);
    await trial.begin();
    await harness.personSays('known');
    await trial.untilTexts(1);
    history.refuse();
    await trial.restart(() => harness.personSays('missed for good'));
    const gap = await trial.intake.waitFor(() => trial.intake.gaps[0]);
    expect(gap.reason).not.toBe('');
    await harness.personSays('goes on');
    await trial.intake.waitFor(() => trial.intake.texts.includes('goes on'));
  },
});

export const webhookChecks = checksOf('webhook', {
  'refuses a caller that does not know the secret': async (trial) => {
    const { harness, intake } = trial;
    const webhook = trial.need(harness.webhook);
    await trial.begin();
    for (const secret of ['wrong', 'missing'] as const) {
      const status = await webhook.deliver('let me in', secret);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
    }
    expect(await webhook.deliver('from the platform')).toBeLessThan(300);
    await trial.untilTexts(1);
    expect(intake.texts).toEqual(['from the platform']);
  },

  'loses no message that the webhook accepted': async (trial) => {
    const { harness, intake } = trial;
    const webhook = trial.need(harness.webhook);
    await trial.begin();
    intake.failNext('store_unavailable', 1_000_000);
    const whileAway = await webhook.deliver('while the store is away');
    await trial.adapter.stop();
    const whileStopped = await webhook.deliver('while nobody receives');
    await trial.restart();
    const promised = [
      ...(whileAway < 300 ? ['while the store is away'] : []),
      ...(whileStopped < 300 ? ['while nobody receives'] : []),
    ];
    await webhook.deliver('afterwards');
    await trial.intake.waitFor(() => trial.intake.texts.includes('afterwards'));
    await trial.untilTexts(promised.length + 1);
    expect(trial.intake.texts).toEqual([...promised, 'afterwards']);
  },
});
