import { fitChars } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';

/** Describes a fault in one line, for the log. */
export function faultText(error: unknown): string {
  if (error instanceof ParleyError) return fitChars(`${error.code}: ${error.message}`, 500);
  if (error instanceof Error) return fitChars(`${error.name}: ${error.message}`, 500);
  return 'something other than an Error was thrown';
}
