/** The gateway is killed around the steps that fetch and read files: each file is shown once, and heard once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KillPoint } from '../../src/contracts/probe.ts';
import { docxOf, voiceNote } from '../media/some-files.ts';
import { blocksOf } from '../platforms/anthropic/wire.ts';
import { startTranscriber, type Transcribing } from '../platforms/transcriber/server.ts';
import { countEvents, findBreaches, readStore, untilAtRest } from './conservation.ts';
import type { ParleyProcess } from './parley-process.ts';
import { openStage, type Stage } from './stage.ts';
import { said } from './telegram-chat.ts';
import { until } from './until.ts';

/** How often a voice message is written down: twice only if its text was lost with the process. */
const points: readonly (readonly [KillPoint, number])[] = [
  ['accepted', 1],
  ['fetched', 1],
  ['media-read', 1],
  ['taken', 1],
];

describe('a gateway that is killed and started again, one point after the other', () => {
  const ends: (() => Promise<void>)[] = [];
  let transcriber: Transcribing;
  let stage: Stage;
  let parley: ParleyProcess;

  beforeAll(async () => {
    transcriber = await startTranscriber();
    ends.push(() => transcriber.close());
    const config = { media: { transcriber: { url: transcriber.url } } };
    stage = await openStage({ config }, (end) => ends.push(end));
    stage.model.script(() => ({ text: 'read' }));
    parley = await stage.start();
  });
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });

  it.each(points)(
    'shows each file once, killed at the point %s',
    async (point, transcriptions) => {
      const { telegram, model, dataDir } = stage;
      const index = points.findIndex(([one]) => one === point);
      const from = { id: 501 + index, is_bot: false, first_name: 'Ada' };
      const [heard, events] = [transcriber.heard.length, countEvents(dataDir)];
      await parley.killAt(`${point}:1`);
      const [document, voice] = [
        telegram.world.addFile({ name: 'a.docx', mimeType: 'x/y', bytes: docxOf('milk and bread') }),
        telegram.world.addFile({ name: 'voice', mimeType: 'audio/ogg', bytes: voiceNote() }),
      ];
      telegram.userSends({ from, text: 'Read this.', document });
      telegram.userSends({ from, voice });
      await parley.ended;
      parley = await stage.start();
      await untilAtRest(dataDir, events + 2);
      await until(() => said(telegram, from.id).includes('🎙 “hello”'), { what: 'the echo' });

      const last = model.requests.at(-1)?.body.messages.flatMap(blocksOf) ?? [];
      const shown = last.map(({ text = '' }) => text).join('\n');
      expect(shown.match(/milk and bread/g)).toHaveLength(1);
      expect(shown.match(/written down by a machine/g)).toHaveLength(1);
      expect(said(telegram, from.id).filter((text) => text.startsWith('🎙'))).toHaveLength(1);
      expect(transcriber.heard.slice(heard)).toHaveLength(transcriptions);
      const contents = readStore(dataDir, 'select content from inbox where laneKey like ?', `%:${from.id}`);
      const files = contents.flatMap(({ content }) => JSON.parse(String(content)).stored ?? []);
      expect(files.map(({ reading }) => reading.kind).sort()).toEqual(['text', 'transcript']);
      expect(findBreaches(dataDir)).toEqual([]);
    },
    120_000,
  );
});
