/** `parley agent`: from the command line through the entrance, the lane and the run, and back. */
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';

describeRow('parley agent', (atEnd) => {
  let dataDir: string;
  let parley: ParleyProcess;
  const command = (...args: string[]) => runParley(args, { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' });
  const agent = (...args: string[]) => command('agent', ...args);

  beforeAll(async () => {
    dataDir = aFolder(atEnd);
    parley = await startParley({ dataDir, env: {} });
    atEnd(() => parley.kill());
  });

  test('reports invalid arguments and does nothing', async ({ expect }) => {
    const unknown = await agent('--message', 'hello', '--session', 'main:no:such:dm:one');
    expect(unknown).toMatchObject({ code: 1, stderr: 'There is no session main:no:such:dm:one.\n' });
    const nobody = await agent('--message', 'hello', '--agent', 'nobody');
    expect(nobody).toMatchObject({ code: 1, stderr: 'There is no agent nobody.\n' });
    const long = await agent('--message', 'x'.repeat(16_001));
    expect(long.code).toBe(1);
    expect(long.stderr).toContain('the limit is 16000');
    expect(readStore(dataDir, 'select id from inbox')).toEqual([]);
  });

  test('prints the answer, which is recorded but belongs to no conversation', async ({ expect }) => {
    const { code, stdout, stderr } = await agent('--message', 'hello', '--wait', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ status: 'ok', outcome: 'answered', text: expect.stringMatching(/\S/) });
    expect(result.usage.outputTokens).toBeGreaterThanOrEqual(0);
    expect((await agent('--message', 'hello again', '--wait')).stdout.trim()).not.toBe('');
    expect((await command('why', result.runId)).stdout).toContain(result.runId);
    await untilAtRest(dataDir, 0);
    expect(readStore(dataDir, 'select key from outbox')).toEqual([]);
    expect(readStore(dataDir, 'select source, outcome from inbox')).toEqual([
      { source: 'api', outcome: 'answered' },
      { source: 'api', outcome: 'answered' },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('sends a message once per idempotency key', async ({ expect }) => {
    const items = () => readStore(dataDir, 'select id, outcome from inbox order by seq');
    const told = () => readStore(dataDir, `select id from transcript where role = 'user'`).length;
    const [itemsBefore, toldBefore] = [items().length, told()];
    expect((await agent('--message', 'hello', '--key', 'once')).code).toBe(0);
    const { code, stdout } = await agent('--message', 'hello', '--key', 'once', '--wait');
    expect(code).toBe(0);
    expect(stdout.trim()).not.toBe('');
    const other = await agent('--message', 'something else', '--key', 'once');
    expect(other).toMatchObject({ code: 1, stderr: 'The key once belongs to another message.\n' });
    await untilAtRest(dataDir, 0);
    expect(items().slice(itemsBefore)).toMatchObject([{ outcome: 'answered' }]);
    expect(told()).toBe(toldBefore + 1);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('sends files, and prints the answer as it is written', async ({ expect }) => {
    const path = join(dataDir, 'list.txt');
    await writeFile(path, 'milk and bread');
    const { code, stdout, stderr } = await agent('--message', 'look', '--file', path, '--stream');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trim()).not.toBe('');
    const [item] = readStore(dataDir, 'select content from inbox order by seq desc limit 1');
    expect(JSON.parse(String(item?.content)).stored).toMatchObject([
      { kind: 'stored', mimeType: 'text/plain', sizeBytes: 14, name: 'list.txt' },
    ]);
    const nothing = await agent('--message', 'look', '--file', join(dataDir, 'no.txt'));
    expect(nothing).toMatchObject({ code: 1, stderr: expect.stringContaining("can't be read (ENOENT)") });
    await truncate(path, 21 * 1024 * 1024);
    expect(await agent('--message', 'look', '--file', path)).toMatchObject({
      code: 1,
      stderr: 'The files are too large: together they may have 20 MB (media.maxMb).\n',
    });
  });

  test('answers a program that sends far too much before it reads', async ({ expect }) => {
    const before = readStore(dataDir, 'select id from inbox');
    const token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
    const data = Buffer.alloc(30_000_000).toString('base64');
    const body = JSON.stringify({ message: 'look', files: [{ name: 'large', data }] });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-parley': '1' };
    // Closing the connection loses the answer only sometimes.
    for (let time = 0; time < 5; time += 1) {
      const answer = await fetch(`${parley.url}/api/agent`, { method: 'POST', headers, body });
      expect(answer.status).toBe(413);
      expect(await answer.json()).toMatchObject({ error: { code: 'invalid_request' } });
    }
    expect(readStore(dataDir, 'select id from inbox')).toEqual(before);
  });

  test('gives one run its own time and instructions, as why shows', async ({ expect }) => {
    const set = ['--timeout', '60', '--prompt', 'Be brief.'];
    const { stdout } = await agent('--message', 'hello', '--wait', '--json', ...set);
    const { runId, status, payloads } = JSON.parse(stdout);
    expect(status).toBe('ok');
    expect(payloads).toEqual([{ text: expect.stringMatching(/\S/) }]);
    expect((await command('why', runId)).stdout).toContain(
      'gets a run of its own, with at most 60 s and instructions of its own (9 characters)',
    );
    expect(await agent('--message', 'hello', '--timeout', 'soon')).toMatchObject({
      code: 1,
      stderr: '--timeout takes 1 to 3600 seconds.\n',
    });
  });

  test('steers and summarizes a session, and says whether it is busy', async ({ expect }) => {
    await untilAtRest(dataDir, 0);
    const [lane] = readStore(dataDir, 'select laneKey from inbox limit 1');
    const session = ['--session', String(lane?.laneKey)];
    expect(await agent('busy', ...session)).toMatchObject({ code: 0, stdout: 'idle\n' });
    const summary = await agent('summarize', ...session);
    expect(summary).toMatchObject({ code: 0, stdout: expect.stringContaining('done\n'), stderr: '' });
    const steered = await agent('steer', 'hello', ...session);
    expect(steered).toMatchObject({ code: 0, stderr: '' });
    await untilAtRest(dataDir, 0);
    expect((await command('why', steered.stdout.trim())).stdout).toContain(steered.stdout.trim());
    const unknown = await agent('steer', 'hello', '--session', 'main:no:such:dm:one');
    expect(unknown).toMatchObject({ code: 1, stderr: 'There is no session main:no:such:dm:one.\n' });
    expect(await agent('busy', '--session', 'main:no:such:dm:one')).toMatchObject({
      code: 1,
      stderr: 'There is no such session.\n',
    });
    await untilAtRest(dataDir, 0);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('answers once after two sub-agents of the demo model, without an API key', async ({ expect }) => {
    const { stdout, stderr } = await agent('--message', 'spawn two', '--wait');
    expect(stderr).toBe('');
    expect(stdout).toMatch(/Part 1 is done[\s\S]*Part 2 is done/);
    expect(readStore(dataDir, 'select status, told from children')).toEqual([
      { status: 'completed', told: 'tool' },
      { status: 'completed', told: 'tool' },
    ]);
  });

  test('fails if Parley stops meanwhile', async ({ expect }) => {
    await parley.kill();
    expect((await agent('--message', 'hello')).code).toBe(1);
  });
});
