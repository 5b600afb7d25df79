import { execFileSync } from 'node:child_process';
import { constants, createReadStream, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { ParleyError } from '#contracts/errors.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { secretsOf } from '../../src/config/secrets-of.ts';
import { createLogger } from '../../src/logging/logger.ts';
import { createRedactor } from '../../src/logging/redaction.ts';
import { aFolder } from '../support/own-folder.ts';

const canary = 'canary-3c9a-77f1';
const level = 'debug' as const;

let folder: string;
beforeEach(() => {
  folder = aFolder();
});

function collect() {
  const chunks: string[] = [];
  const destination = new Writable({
    write: (chunk, _encoding, done) => {
      chunks.push(String(chunk));
      done();
    },
  });
  return { destination, text: () => chunks.join('') };
}

/** Creates a named pipe, which holds 64 KB of unread data. */
function aPipe(): string {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  return path;
}

describe('the logger', () => {
  it('writes one JSON object per event, with its fields', async () => {
    const path = join(folder, 'logs', 'parley.log');
    const { log, close } = await createLogger({ level, isPretty: false, destination: path });
    log.child({ runId: 'r1' }).info({ turns: 2 }, 'run.finished');
    log.warn({}, 'second');
    await close();
    const lines = readFileSync(path, 'utf8').trim().split('\n');
    expect(lines).toHaveLength(2);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'info',
      event: 'run.finished',
      runId: 'r1',
      turns: 2,
    });
  });

  it('drops lines after its end without an error', async () => {
    const path = join(folder, 'parley.log');
    const { log, close } = await createLogger({ level, isPretty: false, destination: path });
    log.info({}, 'early');
    await close();
    log.info({}, 'late');
    expect(readFileSync(path, 'utf8')).toMatch(/early.*\n$/);
  });

  it('closes even if nobody reads its lines any more', async () => {
    const path = aPipe();
    const reader = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const { log, close } = await createLogger({ level, isPretty: false, destination: path });
    await reader.close();
    log.info({}, 'for nobody');
    await close();
    // By now the logger knows that its pipe is closed.
    await close();
  });

  it('keeps a few megabytes for a reader that has stopped, and says how much was lost', async () => {
    const path = aPipe();
    const idle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const { log, close } = await createLogger({ level, isPretty: false, destination: path });
    const filler = 'x'.repeat(100_000);
    for (let n = 0; n < 60; n += 1) log.info({ filler }, n === 59 ? 'last' : 'line');
    let read = '';
    for await (const chunk of createReadStream(path, 'latin1')) {
      read += chunk;
      if (/"event":"(?:last|log.lines-dropped)"/.test(read.slice(-200_000))) break;
    }
    expect(read).toContain('log.lines-dropped');
    expect(read.length).toBeLessThan(5_000_000);
    await idle.close();
    await close();
  });

  it('leaves out lines below its level', async () => {
    const { destination, text } = collect();
    const { log } = await createLogger({ level: 'warn', isPretty: false, destination });
    log.info({}, 'hidden');
    log.error({}, 'shown');
    expect(text()).not.toContain('hidden');
    expect(text()).toContain('shown');
  });

  it('changes its level later, for existing loggers, too', async () => {
    const { destination, text } = collect();
    const { log, setLevel } = await createLogger({ level: 'info', isPretty: false, destination });
    const ofChannel = log.child({ channel: 'telegram' });
    ofChannel.debug({}, 'hidden');
    setLevel('debug');
    ofChannel.debug({}, 'shown');
    expect(text()).toContain('shown');
    expect(text()).not.toContain('hidden');
  });

  it.each([false, true])(
    'keeps secrets out of messages, stacks, causes and fields (pretty: %s)',
    async (isPretty) => {
      const { destination, text } = collect();
      const redactor = createRedactor([canary]);
      const { log } = await createLogger({ level, isPretty, destination, redactor });
      const cause = new Error(`fetch https://x/?key=${encodeURIComponent(canary)}`);
      log.error(
        { err: new ParleyError('internal', `call with ${canary}`, { cause }), [canary]: canary },
        canary,
      );
      log
        .child({ nested: { deep: [canary] } })
        .debug({ base64: Buffer.from(canary).toString('base64') }, 'x');
      expect(text()).not.toContain(canary);
      expect(text()).not.toContain(Buffer.from(canary).toString('base64').slice(0, 16));
      expect(text().match(/\[secret\]/g)?.length).toBeGreaterThanOrEqual(6);
    },
  );

  it('leaves out what libraries attach to errors, such as message bodies', async () => {
    const { destination, text } = collect();
    const { log } = await createLogger({ level, isPretty: false, destination });
    const err = Object.assign(new Error('400: Bad Request'), {
      payload: { text: 'a private message' },
      code: 400,
    });
    log.error({ err }, 'send.failed');
    expect(text()).not.toContain('private');
    expect(JSON.parse(text()).err).toMatchObject({ name: 'Error', message: '400: Bad Request', code: '400' });
  });

  it('prints no escape sequence on a terminal', async () => {
    const { destination, text } = collect();
    const { log } = await createLogger({ level, isPretty: true, destination });
    log.info({ name: '\u001b[2J\u001b]0;owned\u0007Eve' }, 'message.received');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be gone
    expect(text()).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
    expect(text()).toContain('Eve');
  });
});

describe('the secrets of a configuration (threat 7)', () => {
  it('registers all secrets of the configuration for redaction, including passwords in addresses', () => {
    const variables = {
      ANTHROPIC_API_KEY: `key-one-${canary},key-two-${canary}`,
      TELEGRAM_BOT_TOKEN: `123456:${canary.replaceAll('-', '_')}_0123456789abcdef`,
      REDIS_URL: 'rediss://:redis%2Dpass%21@redis.example',
      DATABASE_URL: 'postgres://u:pg-password-1@db/x',
      PARLEY_TOKEN: `token-${canary}-0123456789`,
    };
    const config = loadConfig(readEnvironment(variables), folder);
    const { redact } = createRedactor(secretsOf(config));
    for (const value of [...Object.values(variables), 'redis-pass!', 'redis%2Dpass%21', 'pg-password-1']) {
      expect(redact(`(${value})`)).not.toContain(value);
    }
    expect(JSON.stringify(config)).not.toContain(canary);
  });
});
