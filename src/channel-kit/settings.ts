import { z } from 'zod';

/** A secret from the configuration: plain, or wrapped so that it can't be logged by accident. */
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

/** The address of a server, without trailing slashes. */
export const serverUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));

/** How long a call may take before its outcome counts as unknown, ms. */
export const callTimeoutMs = z
  .int()
  .min(1000)
  .max(300_000)
  .describe(
    'Longest call to the network, ms; one that delivers a part ends after outbox.sendTimeoutMs if that is shorter.',
  );
