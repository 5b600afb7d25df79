import { type Environment, variableNamed } from './environment.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { findSecretProblem, Secret } from './secret.ts';
import type { WebhookSettings } from './webhook-schema.ts';

const minSecretLength = 16;

/** Adds the secrets. A webhook without one is refused: anybody could report anything. */
export function readWebhooks(
  written: FileSettings['webhooks'],
  environment: Environment,
): { readonly webhooks: Readonly<Record<string, WebhookSettings>>; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const found: Record<string, WebhookSettings> = {};
  for (const [name, settings] of Object.entries(written)) {
    const { keyEnv } = settings;
    const secret = keyEnv === undefined ? '' : (variableNamed(keyEnv, environment) ?? '');
    const fault = faultOf(secret);
    if (fault === undefined) found[name] = { ...settings, secret: new Secret(secret) };
    else
      problems.push({
        where: `webhooks.${name}`,
        what: `${fault}, so anybody could report anything to it; ${remedyFor(keyEnv)}`,
      });
  }
  return { webhooks: found, problems };
}

function faultOf(secret: string): string | undefined {
  if (secret === '') return 'has no secret';
  if (secret.length < minSecretLength) return `has a secret of fewer than ${minSecretLength} characters`;
  const problem = findSecretProblem(secret, 'server-key');
  return problem && `has a secret that ${problem}`;
}

function remedyFor(keyEnv: string | undefined): string {
  return keyEnv === undefined
    ? 'name its variable as keyEnv, for example "ALERTS_SECRET"'
    : `set ${keyEnv} in the environment, for example to the output of: openssl rand -hex 24`;
}
