import { ParleyError } from '#contracts/errors.ts';

/** Returns the fault for Kysely trying to share a connection whose one user begins and ends its own transactions. */
export function notShared(): ParleyError {
  return new ParleyError(
    'internal',
    'This connection has one user; it begins no transaction through Kysely.',
  );
}
