import { z } from 'zod';

/** A secret as configuration hands it over: bare, or wrapped so that it cannot be logged by accident. */
export const secretSetting = z.union([
  z.string(),
  z
    .custom<{ reveal(): string }>(
      (value) =>
        typeof value === 'object' &&
        value !== null &&
        'reveal' in value &&
        typeof value.reveal === 'function',
      'must be a string or a secret',
    )
    .transform((wrapped) => wrapped.reveal()),
]);
