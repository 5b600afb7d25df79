import { type Environment, variableNamed } from './environment.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { findSecretProblem, Secret } from './secret.ts';
import type { TranscriberSettings } from './transcriber-schema.ts';

/** Adds the key, which like all secrets only comes from the environment. */
export function readTranscriber(
  written: FileSettings['media']['transcriber'],
  environment: Environment,
): { readonly transcriber?: TranscriberSettings; readonly problems: readonly Problem[] } {
  const { keyEnv } = written ?? {};
  if (written === undefined || keyEnv === undefined)
    return { ...(written && { transcriber: written }), problems: [] };
  const key = variableNamed(keyEnv, environment) ?? '';
  const problem = findSecretProblem(key, 'server-key');
  if (problem === undefined) return { transcriber: { ...written, key: new Secret(key) }, problems: [] };
  const what = `${key === '' ? "isn't set" : problem}; set a real key, or leave media.transcriber.keyEnv out`;
  return { problems: [{ where: `${keyEnv} in the environment`, what }] };
}
