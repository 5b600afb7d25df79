import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { channel } from '../../../channels/terminal/index.ts';
import { createSessionDouble } from '../../support/session-double.ts';
import { silentLog } from '../../support/silent-log.ts';
import { aTerminalHost, readPointer } from './terminal-setup.ts';

describe('the socket of the terminal', () => {
  const session = createSessionDouble();
  let host: Awaited<ReturnType<typeof aTerminalHost>>;
  beforeEach(async () => {
    host = await aTerminalHost(session.timeline);
  });
  afterEach(() => host.close());

  const adapterIn = (dataDir: string) =>
    channel.create({}, { log: silentLog, clock: systemClock, fetch, dataDir, timeline: session.timeline });

  it('opens the socket to its owner alone and removes it on stop', async () => {
    const adapter = host.newAdapter();
    await adapter.start(session.intake);
    expect((await stat(host.socketPath)).mode & 0o777).toBe(0o600);
    expect((await stat(host.dataDir)).mode & 0o777).toBe(0o700);
    await adapter.stop();
    await expect(stat(host.socketPath)).rejects.toThrow(/ENOENT/);
  });

  it('replaces the socket file of a killed process', async () => {
    await writeFile(host.socketPath, 'left over');
    const adapter = host.newAdapter();
    await adapter.start(session.intake);
    const client = host.newClient();
    const id = client.say('hello');
    await expect.poll(() => client.unacknowledged).toEqual([]);
    expect(session.stored.map((event) => event.eventKey)).toContain(id);
    await adapter.stop();
  });

  it.each(['', 'deep-'.repeat(30)])(
    "keeps the new process's socket when the previous one stops late: %s",
    async (below) => {
      const dataDir = join(host.dataDir, below);
      await mkdir(dataDir, { recursive: true });
      const [before, now] = [adapterIn(dataDir), adapterIn(dataDir)];
      await before.start(session.intake);
      await now.start(session.intake);
      await before.stop();
      const client = host.newClient(below === '' ? host.socketPath : await readPointer(dataDir));
      client.say('hello');
      await expect.poll(() => client.unacknowledged).toEqual([]);
      await now.stop();
      expect(await readdir(dataDir)).toEqual([]);
    },
  );

  it('puts a socket with too long a path among the temporary files, with a pointer to it', async () => {
    const dataDir = join(host.dataDir, 'deep-'.repeat(30));
    await mkdir(dataDir, { recursive: true });
    const adapter = adapterIn(dataDir);
    await adapter.start(session.intake);
    const path = await readPointer(dataDir);
    expect(path.length).toBeLessThan(104);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    const client = host.newClient(path);
    client.say('hello');
    await expect.poll(() => client.unacknowledged).toEqual([]);
    // Another process finds what a killed one would have left behind.
    const next = adapterIn(dataDir);
    await next.start(session.intake);
    await expect(stat(dirname(path))).rejects.toThrow(/ENOENT/);
    const nextPath = await readPointer(dataDir);
    await adapter.stop();
    await next.stop();
    await expect(stat(dirname(nextPath))).rejects.toThrow(/ENOENT/);
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  });

  it('cuts off a client whose line never ends and serves the others', async () => {
    const adapter = host.newAdapter();
    await adapter.start(session.intake);
    const flooding = host.newClient();
    const other = host.newClient();
    await expect.poll(() => session.watching()).toBe(2);
    const greetings = flooding.frames.length;
    flooding.sendRaw('x'.repeat(300_000));
    other.say('still here');
    await expect.poll(() => other.unacknowledged).toEqual([]);
    // The flooding client was cut off and reconnected, so it was greeted a second time.
    await expect.poll(() => flooding.frames.length).toBeGreaterThan(greetings);
    expect(flooding.frames.some((frame) => frame.type === 'problem')).toBe(false);
    await adapter.stop();
  });
});
