import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openSendJournal, readSendJournal } from '../../src/outbox/send-journal.ts';
import { aFolder } from '../support/own-folder.ts';
import { silentLog } from '../support/silent-log.ts';

let folder: string;
beforeEach(async () => {
  folder = aFolder();
});

const open = (holder = 'boot-1') => openSendJournal({ path: path(), holder, log: silentLog });
const path = () => join(folder, 'one.sends');
const left = () => readSendJournal(path());
/** The key of its lane may be any text. */
const preview = { key: 'run-1:preview:2.0', messageId: '7', laneKey: 'main:bot:net:dm:“a\n+b”', epoch: 2 };

describe('the journal of calls', () => {
  it('tells the next process which calls had begun and not ended', () => {
    expect(left()).toBeUndefined();
    const journal = open();
    for (const key of ['a', 'b', 'c']) journal.begin(key);
    journal.end('b');
    expect(left()).toEqual({ holder: 'boot-1', begun: ['a', 'c'], shown: [] });
  });

  it("names its holder from the start, so that a call that hasn't begun isn't taken for unknown", () => {
    open('boot-2');
    expect(left()).toEqual({ holder: 'boot-2', begun: [], shown: [] });
  });

  it('keeps the journal short and the unfinished calls in it', () => {
    const journal = open();
    journal.begin('in hand');
    journal.shown(preview);
    for (let call = 0; call < 20_000; call++) {
      journal.begin(`call ${call}`);
      journal.end(`call ${call}`);
    }
    expect(statSync(path()).size).toBeLessThan(300_000);
    expect(left()).toEqual({ holder: 'boot-1', begun: ['in hand'], shown: [preview] });
  });

  it("keeps a preview from the platform's answer until it is recorded", () => {
    const journal = open();
    journal.shown(preview);
    journal.shown({ ...preview, key: 'run-1:preview:2.1' });
    journal.end('run-1:preview:2.1');
    expect(left()).toEqual({ holder: 'boot-1', begun: [], shown: [preview] });
    appendFileSync(path(), '={"key":"run-2:preview:1.0","messa');
    expect(left()?.shown).toEqual([preview]);
  });

  it('tells nothing after a crash of the machine, which may have lost its last lines', () => {
    open();
    const [head = '', ...rest] = readFileSync(path(), 'utf8').split('\n');
    writeFileSync(path(), [head.replace(/"machine":"[^"]+"/, '"machine":"another"'), ...rest].join('\n'));
    expect(left()).toBeUndefined();
  });

  it.each(['', '{', '[]\n+a\n', 'null\n', '\u0000\u0000\u0000'])(
    'tells nothing if the file contains %j',
    (text) => {
      writeFileSync(path(), text);
      expect(left()).toBeUndefined();
    },
  );

  it('ignores a line that a kill cut short, because its call would have begun after it', () => {
    open();
    appendFileSync(path(), '+run-1');
    expect(left()?.begun).not.toContain('run-1:1');
  });
});
