/**
 * The process of one voice message that a local model writes down: the model is loaded for it and gone afterwards. Not a
 * thread, because the library ends the process that gives it a broken model.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sherpaModelIn } from './sherpa-model.ts';

/** A voice message and the folder of the model. */
export type LocalJob = {
  readonly path: string;
  readonly mimeType: string;
  readonly folder: string;
  readonly language: string | undefined;
};

/** `absent`: the libraries aren't installed; `format`: only WAV and Ogg Opus are decoded; `model`: it can't be loaded. */
export type LocalResult = { readonly text: string } | { readonly problem: 'absent' | 'format' | 'model' };

/** The parts of the two libraries that are used, which bring no types. */
type Sound = { readonly samples: Float32Array; readonly sampleRate: number };
type Stream = { acceptWaveform(sound: Sound): void };
type Recognizer = {
  createStream(): Stream;
  decode(stream: Stream): void;
  getResult(stream: Stream): { readonly text: string };
};
type Sherpa = { OfflineRecognizer: new (config: object) => Recognizer; readWave(path: string): Sound };
type OpusDecoder = {
  readonly ready: Promise<void>;
  decodeFile(
    bytes: Uint8Array,
  ): Promise<{ readonly channelData: readonly Float32Array[]; readonly sampleRate: number }>;
};
type Opus = { readonly OggOpusDecoder: new () => OpusDecoder };

/** Named by variables, since neither is a dependency of Parley: the owner installs them. */
const libraries = { sherpa: 'sherpa-onnx-node', opus: 'ogg-opus-decoder' };

process.once('message', async (job: LocalJob) => {
  const result = await transcribe(job);
  process.send?.(result, () => process.disconnect());
});

async function transcribe({ path, mimeType, folder, language }: LocalJob): Promise<LocalResult> {
  const sherpa = await load<{ readonly default: Sherpa }>(libraries.sherpa);
  const opus = await load<Opus>(libraries.opus);
  if (sherpa === undefined || opus === undefined) return { problem: 'absent' };
  const sound = await soundOf(path, mimeType, { sherpa: sherpa.default, opus }).catch(() => undefined);
  if (sound === undefined) return { problem: 'format' };
  try {
    const names = await readdir(folder);
    const model = sherpaModelIn(names, { language, at: (name) => join(folder, name) });
    if (model === undefined) return { problem: 'model' };
    const recognizer = new sherpa.default.OfflineRecognizer({ modelConfig: model });
    const stream = recognizer.createStream();
    stream.acceptWaveform(sound);
    recognizer.decode(stream);
    return { text: recognizer.getResult(stream).text };
  } catch {
    return { problem: 'model' };
  }
}

async function load<Library>(name: string): Promise<Library | undefined> {
  try {
    return (await import(name)) as Library;
  } catch {
    return undefined;
  }
}

type Libraries = { readonly sherpa: Sherpa; readonly opus: Opus };

async function soundOf(
  path: string,
  mimeType: string,
  { sherpa, opus }: Libraries,
): Promise<Sound | undefined> {
  if (mimeType === 'audio/wav') return sherpa.readWave(path);
  if (mimeType !== 'audio/ogg') return undefined;
  const decoder = new opus.OggOpusDecoder();
  await decoder.ready;
  const { channelData, sampleRate } = await decoder.decodeFile(await readFile(path));
  const [samples] = channelData;
  return samples === undefined || samples.length === 0 ? undefined : { samples, sampleRate };
}
