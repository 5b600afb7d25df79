import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLocalTranscriber } from '../../src/media/local-transcriber.ts';
import { sherpaModelIn } from '../../src/media/sherpa-model.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aFolder } from '../support/own-folder.ts';
import { voiceNote } from './some-files.ts';

const at = (name: string) => `/m/${name}`;

describe('a local model', () => {
  it('says what to install where its libraries are missing', async () => {
    const texts = textsFor('en');
    const folder = aFolder();
    const path = join(folder, 'voice');
    await writeFile(path, voiceNote());
    const transcriber = createLocalTranscriber({ folder, language: undefined, timeoutMs: 60_000, texts });
    const { signal } = new AbortController();
    expect(await transcriber.transcribe({ path, mimeType: 'audio/ogg' }, signal)).toEqual({
      kind: 'failed',
      reason: texts.voiceNotInstalled,
    });
  });

  it.each([
    [['tiny-encoder.onnx', 'tiny-decoder.onnx', 'tiny-tokens.txt'], 'whisper'],
    [['encoder.int8.onnx', 'encoder.onnx', 'decoder.onnx', 'joiner.onnx', 'tokens.txt'], 'transducer'],
    [['model.int8.onnx', 'tokens.txt'], 'senseVoice'],
  ])('finds the kind of the model in a folder with %j', (names, kind) => {
    expect(sherpaModelIn(names, { language: 'de', at })).toHaveProperty(kind);
  });

  it('takes the smaller of two precisions, and no folder without a model', () => {
    const names = ['model.onnx', 'model.int8.onnx', 'tokens.txt'];
    expect(sherpaModelIn(names, { language: undefined, at })).toMatchObject({
      senseVoice: { model: '/m/model.int8.onnx' },
      tokens: '/m/tokens.txt',
    });
    for (const others of [[], ['tokens.txt'], ['model.onnx'], ['readme.md', 'encoder.onnx', 'tokens.txt']])
      expect(sherpaModelIn(others, { language: undefined, at })).toBeUndefined();
  });
});
