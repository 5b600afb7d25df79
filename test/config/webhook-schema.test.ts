import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { secretsOf } from '../../src/config/secrets-of.ts';
import { aFolder } from '../support/own-folder.ts';

const secret = '5d0b7c1e9a3f48d2';

function load(webhooks: object, variables: Record<string, string> = {}) {
  const folder = aFolder();
  writeFileSync(join(folder, 'parley.config.json'), JSON.stringify({ webhooks }));
  return loadConfig(readEnvironment(variables), folder);
}

it("reads a webhook's secret from its variable, for redaction too", () => {
  const config = load({ alerts: { keyEnv: 'ALERTS' } }, { ALERTS: secret });
  expect(config.webhooks.alerts).toMatchObject({ signature: 'none' });
  expect(String(config.webhooks.alerts?.secret)).toBe('[secret]');
  expect(secretsOf(config)).toContain(secret);
});

it('refuses a webhook without a secret, or with one that could be guessed', () => {
  expect(() => load({ alerts: {} })).toThrow(/webhooks\.alerts: has no secret.*name its variable as keyEnv/);
  const named = { alerts: { keyEnv: 'ALERTS' } };
  expect(() => load(named)).toThrow(
    /webhooks\.alerts: has no secret, so anybody could report anything to it; set ALERTS in the environment/,
  );
  expect(() => load(named, { ALERTS: 'short' })).toThrow(/fewer than 16 characters/);
  expect(() => load(named, { ALERTS: 'your-secret-goes-here' })).toThrow(/placeholder/);
});

it('refuses a webhook of an unknown agent, and names that no address has', () => {
  const hook = { keyEnv: 'ALERTS' };
  expect(() => load({ alerts: { ...hook, agent: 'nobody' } }, { ALERTS: secret })).toThrow(/nobody/);
  expect(() => load({ 'Alerts/1': hook }, { ALERTS: secret })).toThrow(/small letters/);
  expect(() => load({ alerts: { ...hook, secret } }, { ALERTS: secret })).toThrow(/secret/);
});
