import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { type WireBody, withoutNotes } from '../platforms/anthropic/wire.ts';
import { aFolder } from '../support/own-folder.ts';
import { shareOf } from '../support/turn.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { loadable } from './parley-process.ts';
import { startStage } from './stage.ts';
import { ada, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

/** Returns the last message shown to the model, block by block, without the time. */
function lastShown(body: WireBody | undefined): readonly string[] {
  const last = body?.messages.at(-1);
  return last === undefined ? [] : withoutNotes(last).map((block) => JSON.stringify(block));
}

const tails = [
  { steerTail: 'skip', ran: 1, second: 'skipped: a new message arrived' },
  { steerTail: 'finish', ran: 2, second: 'done' },
];

describe.concurrent('a message that is sent while a tool works', () => {
  test.for(shareOf(tails, 2))(
    'reports a message sent during a tool as waiting, reads it next, and treats the other calls as steerTail $steerTail says',
    async ({ steerTail, ran, second }, { expect, onTestFinished }) => {
      const folder = aFolder();
      const [EFFECTS_FILE, GO_FILE] = [join(folder, 'effects'), join(folder, 'go')];
      const env = { TEST_PLUGIN: loadable('slow-tool'), EFFECTS_FILE, GO_FILE };
      const settings = { env, config: { run: { steerTail } } };
      const { telegram, model, dataDir } = await startStage(settings, onTestFinished);
      const slow = { name: 'slow', input: {} };
      model.script([{ toolCalls: [slow, slow] }, { text: 'I go left.' }]);
      telegram.userSends({ from: ada, text: 'Go right' });
      await until(() => existsSync(EFFECTS_FILE), { what: 'the first tool works' });
      telegram.userSends({ from: ada, text: 'No, left' });
      const asked = () => telegram.messages(ada.id).find(({ text }) => text === 'No, left');
      // After more than 2 s a reaction shows that the message has arrived.
      await telegram.waitFor(() => asked()?.botReaction === '👀');
      writeFileSync(GO_FILE, '');
      await untilSaid(telegram, { chat: ada.id, text: 'I go left.' });
      await untilAtRest(dataDir, 2);

      expect(readFileSync(EFFECTS_FILE, 'utf8').trim().split('\n')).toHaveLength(ran);
      const shown = lastShown(model.requests[1]?.body);
      expect(shown).toHaveLength(3);
      expect(shown[0]).toContain('done');
      expect(shown[1]).toContain(second);
      expect(shown[2]).toContain('No, left');
      expect(model.requests).toHaveLength(2);
      expect(said(telegram, ada.id)).toEqual(['I go left.']);
      await telegram.waitFor(() => asked()?.botReaction === undefined);
      // Waits, perhaps read, none: one call each.
      const calls = telegram.calls.filter(({ method }) => method === 'setMessageReaction').length;
      expect([2, 3]).toContain(calls);
      const outcomes = readStore(dataDir, 'select outcome, "notifiedAt" > 0 as told from inbox order by seq');
      expect(outcomes).toEqual([
        { outcome: 'answered', told: null },
        { outcome: 'answered', told: 1 },
      ]);
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );
});
