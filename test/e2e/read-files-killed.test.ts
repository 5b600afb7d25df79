/** The gateway is killed around the steps that fetch and read files: each file is shown once, and heard once. */
import { expect, it, onTestFinished } from 'vitest';
import type { KillPoint } from '../../src/contracts/probe.ts';
import { docxOf, voiceNote } from '../media/some-files.ts';
import { blocksOf } from '../platforms/anthropic/wire.ts';
import { startTranscriber } from '../platforms/transcriber/server.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { openStage } from './stage.ts';
import { ada, said } from './telegram-chat.ts';
import { until } from './until.ts';

/** How often a voice message is written down: twice only if its text was lost with the process. */
const points: readonly (readonly [KillPoint, number])[] = [
  ['accepted', 1],
  ['fetched', 1],
  ['media-read', 1],
  ['taken', 1],
];

it.each(points)(
  'shows each file once, killed at the point %s',
  async (point, transcriptions) => {
    const transcriber = await startTranscriber();
    onTestFinished(() => transcriber.close());
    const config = { media: { transcriber: { url: transcriber.url } } };
    const stage = await openStage({ config }, onTestFinished);
    const { telegram, model, dataDir } = stage;
    model.script(() => ({ text: 'read' }));
    const first = await stage.start({ killAt: `${point}:1` });
    const [document, voice] = [
      telegram.world.addFile({ name: 'a.docx', mimeType: 'x/y', bytes: docxOf('milk and bread') }),
      telegram.world.addFile({ name: 'voice', mimeType: 'audio/ogg', bytes: voiceNote() }),
    ];
    telegram.userSends({ from: ada, text: 'Read this.', document });
    telegram.userSends({ from: ada, voice });
    await first.ended;
    await stage.start();
    await untilAtRest(dataDir, 2);
    await until(() => said(telegram, ada.id).includes('🎙 “hello”'), { what: 'the echo' });

    const last = model.requests.at(-1)?.body.messages.flatMap(blocksOf) ?? [];
    const shown = last.map(({ text = '' }) => text).join('\n');
    expect(shown.match(/milk and bread/g)).toHaveLength(1);
    expect(shown.match(/written down by a machine/g)).toHaveLength(1);
    expect(said(telegram, ada.id).filter((text) => text.startsWith('🎙'))).toHaveLength(1);
    expect(transcriber.heard).toHaveLength(transcriptions);
    const ends = readStore(dataDir, 'select content from inbox').map(({ content }) =>
      JSON.parse(String(content)),
    );
    expect(
      ends
        .flatMap(({ stored = [] }) => stored)
        .map(({ reading }) => reading.kind)
        .sort(),
    ).toEqual(['text', 'transcript']);
    expect(findBreaches(dataDir)).toEqual([]);
  },
  120_000,
);
