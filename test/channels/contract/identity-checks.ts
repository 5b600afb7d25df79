import { expect } from 'vitest';
import { checksOf } from './check.ts';

export const identityChecks = checksOf('identity', {
  'identifies the account by its stable id': async ({ adapter, harness, signal }) => {
    const account = await adapter.identify(signal);
    expect(account.id).toBe(harness.account);
    expect(account.name).not.toBe('');
  },

  'reports refused credentials': async ({ harness, signal, need }) => {
    const stranger = need(harness.strangerAdapter).call(harness);
    await expect(stranger.identify(signal)).rejects.toMatchObject({ code: 'channel_unauthorised' });
  },
});
