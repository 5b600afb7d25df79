import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ParleyError } from '#contracts/errors.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { secretsOf } from '../../src/config/secrets-of.ts';
import { aFolder } from '../support/own-folder.ts';

const tokenOf = (id: number) => `${id}:AAF0123456789abcdefghijklmnopqrs-_x`;

function load(channels: object, variables: Record<string, string> = {}) {
  const folder = aFolder();
  writeFileSync(join(folder, 'parley.config.json'), JSON.stringify({ channels }));
  return loadConfig(readEnvironment(variables), folder);
}

function problemOf(channels: object, variables: Record<string, string> = {}): string {
  try {
    load(channels, variables);
  } catch (error) {
    return (error as ParleyError).message;
  }
  throw new Error('the configuration was accepted');
}

describe('several accounts of one network', () => {
  it("gives each account its token by name or by variable, and the network's other settings", () => {
    const accounts = {
      work: { pollSeconds: 5 },
      'at-home': { tokenEnv: 'HOME_BOT', apiRoot: 'https://bots.example' },
      later: {},
    };
    const config = load(
      { telegram: { pollSeconds: 20, accounts } },
      { TELEGRAM_BOT_TOKEN: tokenOf(1), TELEGRAM_BOT_TOKEN_WORK: tokenOf(2), HOME_BOT: tokenOf(3) },
    );
    const { telegram } = config.channels;
    expect(telegram).toMatchObject({ enabled: true, pollSeconds: 20 });
    expect(telegram.accounts?.work).toMatchObject({ enabled: true, pollSeconds: 5 });
    expect(telegram.accounts?.['at-home']).toMatchObject({
      enabled: true,
      pollSeconds: 20,
      apiRoot: 'https://bots.example',
    });
    expect(telegram.accounts?.later).toMatchObject({ enabled: false, needs: 'TELEGRAM_BOT_TOKEN_LATER' });
    const tokens = [telegram, telegram.accounts?.work, telegram.accounts?.['at-home']].map(
      (one) => `${one?.token}`,
    );
    expect(tokens).toEqual(Array(3).fill('[secret]'));
    expect(secretsOf(config)).toEqual(expect.arrayContaining([tokenOf(1), tokenOf(2), tokenOf(3)]));
  });

  it("reports a bot that is configured twice, by an account and by the network's variable", () => {
    const problem = problemOf(
      { telegram: { accounts: { work: { tokenEnv: 'TELEGRAM_BOT_TOKEN' } } } },
      { TELEGRAM_BOT_TOKEN: tokenOf(1) },
    );
    expect(problem).toContain('an account can be configured only once');
  });

  it('turns accounts off together or one by one', () => {
    const variables = { TELEGRAM_BOT_TOKEN_A: tokenOf(1), TELEGRAM_BOT_TOKEN_B: tokenOf(2) };
    const accounts = { a: {}, b: { enabled: false } };
    const both = load({ telegram: { accounts } }, variables).channels.telegram;
    expect([both.enabled, both.accounts?.a?.enabled, both.accounts?.b?.enabled]).toEqual([
      false,
      true,
      false,
    ]);
    const none = load({ telegram: { enabled: false, accounts } }, variables).channels.telegram;
    expect(none.accounts?.a?.enabled).toBe(false);
  });

  it('gives Discord accounts a token each and refuses one bot configured twice', () => {
    const first = 'MTA0NzM0MTIzNDU2Nzg5MDEy.G4abcd.0123456789abcdefghijklmnopqrs-_xyz';
    const variables = { DISCORD_BOT_TOKEN: first, DISCORD_BOT_TOKEN_WORK: `${first}2` };
    const { discord } = load({ discord: { backfillHours: 5, accounts: { work: {} } } }, variables).channels;
    expect(discord.accounts?.work).toMatchObject({ enabled: true, backfillHours: 5 });
    expect(`${discord.token} ${discord.accounts?.work?.token}`).toBe('[secret] [secret]');
    const twice = { ...variables, DISCORD_BOT_TOKEN_WORK: first };
    expect(problemOf({ discord: { accounts: { work: {} } } }, twice)).toContain(
      'the same as DISCORD_BOT_TOKEN',
    );
  });

  it('gives Signal accounts a shared address and a number each', () => {
    const accounts = { work: { number: '+15550002222' }, home: { number: '+15550003333' } };
    const { signal } = load({ signal: { apiUrl: 'http://127.0.0.1:8080', accounts } }).channels;
    expect(signal.enabled).toBe(false);
    expect(signal.accounts?.work).toMatchObject({
      enabled: true,
      apiUrl: 'http://127.0.0.1:8080',
      number: '+15550002222',
    });
    const away = load({ signal: { accounts } }).channels.signal.accounts;
    expect(away?.work).toMatchObject({ enabled: false, needs: 'SIGNAL_API_URL' });
    expect(problemOf({ signal: { accounts: { work: { enabled: true } } } })).toContain('set SIGNAL_API_URL');
  });

  it.each([
    [
      'one token twice',
      { work: {} },
      { TELEGRAM_BOT_TOKEN: tokenOf(1), TELEGRAM_BOT_TOKEN_WORK: tokenOf(1) },
      'TELEGRAM_BOT_TOKEN_WORK in the environment: is the same as TELEGRAM_BOT_TOKEN in the environment',
    ],
    [
      'two names of one variable',
      { 'a-b': {}, a_b: {} },
      { TELEGRAM_BOT_TOKEN_A_B: tokenOf(1) },
      'an account can be configured only once',
    ],
    [
      'a token without its account',
      {},
      { TELEGRAM_BOT_TOKEN_WORK: tokenOf(1) },
      'add "work": {} to channels.telegram.accounts',
    ],
    ['no token for one that is on', { work: { enabled: true } }, {}, 'set TELEGRAM_BOT_TOKEN_WORK'],
    ['a placeholder', { work: {} }, { TELEGRAM_BOT_TOKEN_WORK: 'changeme' }, 'is a placeholder'],
    ['a token in the file', { work: { token: 'x' } }, {}, 'set TELEGRAM_BOT_TOKEN_WORK in the environment'],
    ['an invalid name', { 'no name!': {} }, {}, 'use up to 64 letters'],
    ['no name of a variable', { work: { tokenEnv: 'my token' } }, {}, "isn't the name of a variable"],
  ])('refuses accounts with %s', (_name, accounts, variables, problem) => {
    expect(problemOf({ telegram: { accounts } }, variables)).toContain(problem);
  });
});
