/** Task messages: through the API and the command line, repeated, and while Parley is killed. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type ParleyProcess, startParley } from './parley-process.ts';

type Sent = {
  readonly id?: string;
  readonly state?: string;
  readonly isKnown?: boolean;
  readonly reply?: string;
  readonly error?: { readonly code: string; readonly text: string };
};

const aTask = (id: string, body = 'hello') => `---\ntype: task\ntask_id: ${id}\nfrom: desk\n---\n${body}\n`;

describeRow('a task message', (atEnd) => {
  let dataDir: string;
  let token: string;
  let parley: ParleyProcess;
  const start = async () => {
    parley = await startParley({ dataDir, env: {} });
  };

  beforeAll(async () => {
    dataDir = aFolder(atEnd);
    await start();
    atEnd(() => parley.kill());
    token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
  });

  const send = async (message: string, more: object = {}) => {
    const headers = { authorization: `Bearer ${token}`, 'x-parley': '1', 'content-type': 'application/json' };
    const body = JSON.stringify({ message, ...more });
    const answer = await fetch(`${parley.url}/api/tasks/send`, { method: 'POST', headers, body });
    return { status: answer.status, ...((await answer.json()) as Sent) };
  };
  const items = () => readStore(dataDir, `select outcome from inbox where source = 'task' order by seq`);
  const asked = () => readStore(dataDir, `select id from transcript where role = 'user'`).length;

  test('does a task once, and gives the same reply however often it comes', async ({ expect }) => {
    const first = await send(aTask('once'), { waitMs: 60_000 });
    expect(first).toMatchObject({ status: 200, state: 'done', isKnown: false });
    expect(first.reply).toMatch(
      /^---\ntype: reply\ntask_id: once\nsubtask_id: main\nfrom: main\nto: desk\nstatus: done\n---\n\n\S/,
    );
    const again = await send(aTask('once'));
    expect(again).toEqual({ ...first, isKnown: true });
    expect(await send(aTask('once', 'other'))).toMatchObject({ status: 409, error: { code: 'key_reused' } });
    expect(items()).toEqual([{ outcome: 'answered' }]);
    expect(asked()).toBe(1);
    await untilAtRest(dataDir, 0);
    expect(readStore(dataDir, 'select key from outbox')).toEqual([]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('refuses a message with mistakes and stores nothing', async ({ expect }) => {
    const before = items().length;
    const bad: readonly (readonly [string, RegExp, object?])[] = [
      ['---\ntype: task\n---\nhello', /"task_id" is missing/],
      ['---\ntype: task\ntask_id: x\nhello', /has no end/],
      ['hello', /must begin with a line ---/],
      [aTask('x').replace('from: desk', 'to: nobody'), /there is no agent "nobody"; the agents are: main/],
      [aTask('x').replace('from: desk', 'to: main'), /there is no agent "nobody"/, { agent: 'nobody' }],
    ];
    for (const [message, text, more] of bad)
      expect(await send(message, more)).toMatchObject({
        ...{ status: 400, error: { code: 'invalid_input', text: expect.stringMatching(text) } },
      });
    expect(items()).toHaveLength(before);
  });

  test('archives a reply to nothing once', async ({ expect }) => {
    const reply = '---\ntype: reply\ntask_id: none\nsubtask_id: a\nstatus: done\n---\nhere';
    for (const _ of [1, 2]) expect(await send(reply)).toEqual({ status: 200, state: 'orphan' });
    expect(readStore(dataDir, 'select body, state, reason from taskMessages')).toEqual([
      { body: 'here', state: 'archived', reason: 'orphan' },
    ]);
  });

  test('sends a file from the command line, and prints a reply that can be sent on', async ({ expect }) => {
    const command = (...args: string[]) =>
      runParley(['agent', ...args], { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' });
    const file = join(dataDir, 'task.md');
    await writeFile(file, aTask('filed').replaceAll('\n', '\r\n'));
    const done = await command('--message', `@${file}`, '--agent', 'main', '--wait');
    expect(done).toMatchObject({ code: 0, stderr: '' });
    expect(done.stdout).toMatch(/^---\ntype: reply\ntask_id: filed\n[\s\S]*status: done\n---\n\n\S/);
    expect(await command('--message', `@${file}`)).toEqual(done);
    const reply = join(dataDir, 'reply.md');
    await writeFile(reply, done.stdout);
    expect(await command('--message', `@${reply}`)).toMatchObject({
      ...{ code: 1, stdout: '', stderr: 'The reply was archived: there is no such subtask.\n' },
    });
    expect(await command('--message', `@${file}`, '--session', 'x')).toMatchObject({
      ...{ code: 1, stderr: 'A task message is sent without --session. Leave it out.\n' },
    });
    await writeFile(file, 'hello there');
    expect((await command('--message', `@${file}`, '--wait')).stdout.trim()).not.toBe('');
    await writeFile(file, Buffer.from([0x68, 0xff]));
    expect((await command('--message', `@${file}`)).stderr).toContain("isn't UTF-8");
    await writeFile(file, Buffer.alloc(200_000, 'x'));
    expect((await command('--message', `@${file}`)).stderr).toContain('too large for a message');
    expect((await command('--message', `@${dataDir}`)).stderr).toMatch(/isn't a file|EISDIR/);
    expect((await command('--message', '@no.md')).stderr).toContain("can't be read (ENOENT)");
  });

  test('does a task once if Parley is killed after storing it, and after its end', async ({ expect }) => {
    const before = items().length;
    for (const [point, id] of [
      ['item-enqueued:1', 'k1'],
      ['taken:1', 'k2'],
      ['finished:1', 'k3'],
      ['projected:1', 'k4'],
    ] as const) {
      await parley.killAt(point);
      await expect(send(aTask(id), { waitMs: 60_000 }), point).rejects.toThrow();
      await parley.ended;
      await start();
      const done = await send(aTask(id), { waitMs: 60_000 });
      expect(done, point).toMatchObject({ status: 200, state: 'done' });
      // The files of the task before may have been what it was killed at.
      if (point !== 'projected:1') expect(done, point).toMatchObject({ isKnown: true });
      expect(await send(aTask(id)), point).toEqual({ ...done, isKnown: true });
    }
    expect(items().slice(before)).toEqual(['k1', 'k2', 'k3', 'k4'].map(() => ({ outcome: 'answered' })));
    await untilAtRest(dataDir, 0);
    expect(findBreaches(dataDir)).toEqual([]);
    const unshown = () => readStore(dataDir, 'select id from tasks where isUnshown = 1');
    await expect.poll(unshown).toEqual([]);
    for (const { id } of readStore(dataDir, 'select id from tasks')) {
      const shown = await readFile(join(dataDir, `workspace/tasks/${id}/task.md`), 'utf8');
      expect(shown).toMatch(/^---\ntask_id: [\s\S]*\nstate: done\n[\s\S]*## Result/);
    }
  }, 240_000);
});
