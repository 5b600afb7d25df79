import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSendJournal } from '../../src/outbox/send-journal.ts';
import { silentLog } from '../support/silent-log.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-journal-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const open = () => openSendJournal(folder, silentLog);
const path = () => join(folder, 'sends.journal');

describe('the journal of calls', () => {
  it('tells the next process which calls had begun and not ended', () => {
    const first = open();
    expect(first.earlier).toBeUndefined();
    first.start('boot-1');
    for (const key of ['a', 'b', 'c']) first.begin(key);
    first.end('b');
    expect(open().earlier).toEqual({ holder: 'boot-1', begun: ['a', 'c'] });
  });

  it('begins afresh with its holder, so that nobody is told of calls that are over', () => {
    const first = open();
    first.start('boot-1');
    first.begin('a');
    open().start('boot-2');
    expect(open().earlier).toEqual({ holder: 'boot-2', begun: [] });
  });

  it('keeps what it found until its holder is known: a process that dies before that has lost nothing', () => {
    const first = open();
    first.start('boot-1');
    first.begin('a');
    open();
    expect(open().earlier).toEqual({ holder: 'boot-1', begun: ['a'] });
  });

  it('stays short, and keeps the calls in hand', () => {
    const journal = open();
    journal.start('boot-1');
    journal.begin('in hand');
    for (let call = 0; call < 20_000; call++) {
      journal.begin(`call ${call}`);
      journal.end(`call ${call}`);
    }
    expect(statSync(path()).size).toBeLessThan(300_000);
    expect(open().earlier).toEqual({ holder: 'boot-1', begun: ['in hand'] });
  });

  it('says nothing after a crash of the machine, which may have lost its last lines', () => {
    const journal = open();
    journal.start('boot-1');
    const [head = '', ...rest] = readFileSync(path(), 'utf8').split('\n');
    writeFileSync(path(), [head.replace(/"machine":"[^"]+"/, '"machine":"another"'), ...rest].join('\n'));
    expect(open().earlier).toBeUndefined();
  });

  it.each(['', '{', '[]\n+a\n', 'null\n', '\u0000\u0000\u0000'])('says nothing when it reads %j', (text) => {
    writeFileSync(path(), text);
    expect(open().earlier).toBeUndefined();
  });

  it('takes a line that a kill cut short for a call that had not begun: its call comes after the line', () => {
    const journal = open();
    journal.start('boot-1');
    appendFileSync(path(), '+run-1');
    expect(open().earlier?.begun).not.toContain('run-1:1');
  });
});
