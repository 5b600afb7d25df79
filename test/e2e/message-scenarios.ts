/** What the `message` tool does besides sending text, with a kill: a change is repeated, which has no effect. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Acting, callsFirst, firstId, type Scenario } from './kill-scenarios.ts';
import { answerTo } from './questions.ts';

const question = 'question-1';
/** No file is read for a stranger, so the person in these scenarios is the owner. */
const owned = {
  PARLEY_OWNERS: Array.from({ length: 20 }, (_, index) => `telegram:${firstId + index}`).join(),
};

async function asksAboutNotes({ stage: { dataDir }, person }: Acting): Promise<void> {
  await mkdir(join(dataDir, 'workspace'), { recursive: true });
  await writeFile(join(dataDir, 'workspace', 'notes.txt'), 'the bytes');
  person.says(question);
}

/** The texts and the files of the newest chat in which somebody asked. */
function withFiles({ stage: { telegram } }: Acting): readonly string[] {
  const chat = [...telegram.world.chats.keys()].findLast((id) =>
    telegram.messages(id).some(({ text }) => text === question),
  );
  const answers = chat === undefined ? [] : telegram.botMessages(chat);
  return answers.flatMap(({ text, file }) => [text, file?.name ?? '']).filter((each) => each !== '');
}

export const messageScenarios: readonly Scenario[] = [
  {
    title: 'the message tool, an edit of what it sent',
    kills: ['sent-not-marked:2'],
    channels: ['telegram'],
    longChannels: ['discord', 'signal'],
    questions: [question],
    expected: ['I am done.', answerTo(question)],
    prepare: () =>
      callsFirst(
        { name: 'message', input: { text: 'I am on it.' } },
        { name: 'message', input: { action: 'edit', message: 'last', text: 'I am done.' } },
      ),
  },
  // Telegram can't recognize a repeated file that already arrived, so it isn't sent again.
  {
    title: 'the message tool, a file that it sends',
    kills: ['sent-not-marked:1'],
    channels: ['telegram'],
    env: owned,
    questions: [question],
    expected: ['Here it is.', answerTo(question)],
    unknown: 'arrived',
    unknownPurpose: 'tool',
    prepare: () => ({
      ...callsFirst({ name: 'message', input: { text: 'Here it is.', files: ['notes.txt'] } }),
      act: asksAboutNotes,
    }),
  },
  // Clients know a part by its key, so a repeated one changes nothing.
  ...(['sending:1', 'sent-not-marked:1'] as const).map(
    (kill, index): Scenario => ({
      title: 'the message tool, a file that it sends to a client',
      kills: [kill],
      channels: [index === 0 ? 'web' : 'terminal'],
      questions: [question],
      expected: ['Here it is. [notes.txt, 9]', answerTo(question)],
      prepare: () => ({
        ...callsFirst({ name: 'message', input: { text: 'Here it is.', files: ['notes.txt'] } }),
        act: asksAboutNotes,
      }),
    }),
  ),
  // Telegram can't recognize a repeated poll either; a pin is made again.
  {
    title: 'a poll',
    kills: ['sent-not-marked:1'],
    channels: ['telegram'],
    env: owned,
    questions: [question],
    expected: ['', answerTo(question)],
    unknown: 'arrived',
    unknownPurpose: 'tool',
    prepare: () => callsFirst({ name: 'poll', input: { question: 'Lunch?', options: ['Soup', 'Salad'] } }),
  },
  {
    title: 'a pinned message',
    kills: ['sent-not-marked:1'],
    channels: ['telegram'],
    env: owned,
    questions: [question],
    expected: [answerTo(question)],
    prepare: () => callsFirst({ name: 'pin', input: { message: 'current' } }),
  },
  // The result is stored with the names of the copies, and the answer with its parts.
  ...(['tool-finished:1', 'turn-committed:2'] as const).map(
    (kill): Scenario => ({
      title: 'an answer with a file that a tool attached',
      kills: [kill],
      channels: ['telegram'],
      env: owned,
      questions: [question],
      // The answer is the file's caption; in a run that resumes before its network is loaded, a message before it.
      expected: [answerTo(question), 'notes.txt'],
      prepare: () => ({ ...callsFirst({ name: 'attach' }), act: asksAboutNotes, standing: withFiles }),
    }),
  ),
];
