import type { Config } from './config.ts';
import { Secret } from './secret.ts';

/** Returns every secret value in the configuration and the passwords in its addresses, for redaction. */
export function secretsOf(config: Config): readonly string[] {
  const values: string[] = [];
  visit(config, (secret) => {
    const value = secret.reveal();
    values.push(value, ...passwordsIn(value));
  });
  return values;
}

function visit(value: unknown, onSecret: (secret: Secret) => void): void {
  if (value instanceof Secret) onSecret(value);
  else if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) visit(member, onSecret);
  }
}

function passwordsIn(value: string): readonly string[] {
  if (!value.includes('://') || !URL.canParse(value)) return [];
  const { password } = new URL(value);
  try {
    return password === '' ? [] : [password, decodeURIComponent(password)];
  } catch {
    // A password with a stray % isn't percent-encoded, so it exists only as written.
    return [password];
  }
}
