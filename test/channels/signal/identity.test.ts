/** The account's own ACI only comes from `/v1/identities`. Without that call Signal keeps working, and says so. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RecordingIntake } from '../recording-intake.ts';
import { aSignalStage, type SignalStage } from './signal-setup.ts';

const forever = new AbortController().signal;
const identities = { path: '/v1/identities', times: 1_000_000 };
const contacts = { path: '/v1/contacts', times: 1_000_000 };
const refused = { kind: 'refuse', status: 500, error: 'not now' } as const;
let stage: SignalStage;
let server: SignalStage['server'];

beforeEach(async () => {
  stage = await aSignalStage('socket');
  ({ server } = stage);
});
afterEach(() => stage.close());

it('runs degraded while /v1/identities fails, even from the first start, and recovers', async () => {
  server.fault(refused, identities);
  const adapter = stage.newAdapter();
  expect((await adapter.identify(forever)).id).toBe(server.account.uuid);
  const intake = new RecordingIntake();
  await adapter.start(intake);
  await intake.waitFor(() => intake.troubles.at(-1)?.isDegraded);
  expect(intake.troubles.at(-1)?.detail).toContain('not now');
  server.people.writes({ from: stage.ada, text: 'still arrives' });
  await intake.waitFor(() => intake.texts.includes('still arrives'));
  server.clearFaults();
  await intake.waitFor(() => intake.troubles.at(-1) === undefined);
  await adapter.stop();
});

it('uses the identity of an earlier start if the contacts fail, too', async () => {
  await stage.newAdapter().identify(forever);
  server.fault(refused, identities);
  server.fault(refused, contacts);
  expect((await stage.newAdapter().identify(forever)).id).toBe(server.account.uuid);
});

it('reports itself unavailable for now if no source knows the identity', async () => {
  server.fault(refused, identities);
  server.fault(refused, contacts);
  await expect(stage.newAdapter().identify(forever)).rejects.toMatchObject({
    code: 'channel_unavailable',
    retry: { kind: 'later' },
  });
});

it('asks for a restart if the number belongs to another identity by then', async () => {
  server.fault(refused, identities);
  const adapter = stage.newAdapter();
  await adapter.identify(forever);
  const intake = new RecordingIntake();
  await adapter.start(intake);
  Object.assign(server.account, { uuid: 'a9999999-9999-4999-8999-999999999999' });
  server.clearFaults();
  await intake.waitFor(() => intake.troubles.some((one) => one?.isOver));
  await adapter.stop();
});

it('warns in its checks that the identity is degraded', async () => {
  server.fault(refused, identities);
  const checks = await stage.newAdapter().checks.check(forever);
  expect(checks.find(({ name }) => name === 'identity')).toMatchObject({
    result: 'warning',
    detail: expect.stringContaining('/v1/identities'),
  });
  expect(checks.find(({ name }) => name === 'profile')?.result).toBe('ok');
});
