/** Many voice messages at once through the gateway, whatever the program does that writes them down. */
import { beforeAll, test } from 'vitest';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { voiceNote } from '../media/some-files.ts';
import { blocksOf } from '../platforms/anthropic/wire.ts';
import { startTranscriber, type Transcribing } from '../platforms/transcriber/server.ts';
import { isLong } from '../support/long-run.ts';
import { countEvents, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { openStage, type Stage } from './stage.ts';
import { said } from './telegram-chat.ts';
import { until } from './until.ts';

const texts = textsFor('en');
const count = isLong ? 50 : 10;
const timeoutMs = 1_000;

type Behaviour = Parameters<Transcribing['behaves']>[0];
type Case = readonly [name: string, as: Behaviour, transcript: string, end: string, told: string];
const unheard = (reason: string) => `I couldn’t read “voice” (${reason}).`;
const cases: readonly Case[] = [
  ['works', 'json', 'buy milk', 'transcript', '🎙 “buy milk”'],
  ['is away', 'away', '', 'unread', unheard(texts.voiceNoAnswer)],
  // Those that it would hear too late are named as not read in time.
  ['never answers', 'silent', '', 'unread', 'I couldn’t read “voice” ('],
  ['says that an error is a success', 'error in a success', '', 'unread', 'Unsupported audio format'],
  ['answers with a page', 'page in a success', '', 'unread', unheard(texts.voiceNoTranscript)],
  ['hears nothing', 'json', ' [BLANK_AUDIO]\n', 'transcript', texts.voiceSilent],
];

type Ended = { readonly kind: string; readonly reading?: { readonly kind: string } };

describeRow('many voice messages at once', (atEnd) => {
  let stage: Stage;
  let transcriber: Transcribing;
  beforeAll(async () => {
    transcriber = await startTranscriber();
    atEnd(transcriber.close);
    const config = { media: { transcriber: { url: transcriber.url, timeoutMs } } };
    stage = await openStage({ config }, atEnd);
    await stage.start();
    stage.model.script(() => ({ text: 'read' }));
  });
  const from = (id: number) => ({ id, is_bot: false, first_name: `P${id}` });
  const speak = (id: number, caption: string) => {
    const voice = stage.telegram.world.addFile({ name: 'voice', mimeType: 'audio/ogg', bytes: voiceNote() });
    stage.telegram.userSends({ from: from(id), text: caption, voice });
  };

  for (const [index, [name, as, transcript, end, told]] of cases.entries())
    test(`answers the words beside each of them, and says what was heard, if the program ${name}`, {
      timeout: 300_000,
    }, async ({ expect }) => {
      const { telegram, model, dataDir } = stage;
      transcriber.behaves(as, transcript);
      const events = countEvents(dataDir);
      const before = model.requests.length;
      const people = Array.from({ length: count }, (_, n) => 1_000 * (index + 1) + n);
      for (const id of people) speak(id, `words of ${id}`);
      await untilAtRest(dataDir, events + count);
      for (const id of people) {
        await until(() => said(telegram, id).length === 2, { what: `answer and notice to ${id}` });
        expect(said(telegram, id).filter((text) => text === 'read')).toHaveLength(1);
        expect(said(telegram, id).filter((text) => text.includes(told))).toHaveLength(1);
        expect(said(telegram, id).join()).not.toContain(texts.fileTooLate);
      }
      const asked = model.requests.slice(before).map(({ body }) => body.messages.flatMap(blocksOf));
      for (const id of people) {
        const own = asked.filter((blocks) => blocks.some(({ text = '' }) => text.includes(`words of ${id}`)));
        expect(own).toHaveLength(1);
      }
      const ends = readStore(dataDir, 'select content from inbox where content like \'%"stored"%\'')
        .map(({ content }) => JSON.parse(String(content)))
        .filter(({ text }) => people.some((id) => text === `words of ${id}`))
        .map(({ stored }) =>
          stored.map((file: Ended) => (file.kind === 'missing' ? 'unread' : file.reading?.kind)),
        );
      expect(ends).toEqual(people.map(() => [end]));
      expect(findBreaches(dataDir)).toEqual([]);
    });
});
