import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ChatTexts } from '../texts/chat-texts.ts';
import type { LocalJob, LocalResult } from './local-process.ts';
import { spokenWords, type Transcriber } from './transcriber.ts';

export type LocalModel = Pick<LocalJob, 'folder' | 'language'> & {
  readonly timeoutMs: number;
  readonly texts: Pick<ChatTexts, 'voiceNoAnswer' | 'voiceNotInstalled' | 'voiceFormat' | 'voiceNoModel'>;
};

/** Creates a transcriber that runs a model in a process of its own. */
export function createLocalTranscriber({ folder, language, timeoutMs, texts }: LocalModel): Transcriber {
  const reasons = {
    absent: texts.voiceNotInstalled,
    format: texts.voiceFormat,
    model: texts.voiceNoModel,
  } as const;
  return {
    waitMs: timeoutMs,
    transcribe: async (voice, signal) => {
      const until = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const result = await runProcess({ ...voice, folder, language }, until);
      if (result === undefined) return { kind: 'failed', reason: texts.voiceNoAnswer };
      return 'text' in result
        ? { kind: 'heard', text: spokenWords(result.text) }
        : { kind: 'failed', reason: reasons[result.problem] };
    },
  };
}

/** Undefined if it takes too long. */
async function runProcess(job: LocalJob, signal: AbortSignal): Promise<LocalResult | undefined> {
  if (signal.aborted) return undefined;
  const path = fileURLToPath(new URL('./local-process.ts', import.meta.url));
  const child = fork(path, { stdio: 'ignore', env: {} });
  const { promise, resolve } = Promise.withResolvers<LocalResult | undefined>();
  child.on('message', (result: LocalResult) => resolve(result));
  for (const event of ['error', 'exit']) child.on(event, () => resolve({ problem: 'model' }));
  const giveUp = () => resolve(undefined);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    child.send(job, () => undefined);
    return await promise;
  } finally {
    signal.removeEventListener('abort', giveUp);
    child.kill('SIGKILL');
  }
}
