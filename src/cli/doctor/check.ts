import type { ChannelCheck } from '#contracts/channel-abilities.ts';

/** One finding of `doctor`. `fix` says what to do about it. */
export type DoctorCheck = ChannelCheck;

/** Creates a check that found nothing wrong. */
export const ok = (name: string, detail: string): DoctorCheck => ({ name, result: 'ok', detail });

/** Creates a check that found something to look at. */
export const warning = (name: string, detail: string, fix: string): DoctorCheck => ({
  name,
  result: 'warning',
  detail,
  fix,
});

/** Creates a check that found a fault, with its fix. */
export const failed = (name: string, detail: string, fix: string): DoctorCheck => ({
  name,
  result: 'failed',
  detail,
  fix,
});

const marks = { ok: 'ok', warning: 'warning', failed: 'FAILED' } as const;

/** Renders the checks as a table with the fix under each line that needs one, followed by a summary. */
export function renderChecks(checks: readonly DoctorCheck[]): string {
  const widest = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, result, detail, fix }) => {
    const [first = '', ...rest] = detail.split('\n');
    const indent = ' '.repeat(widest + 13);
    return [
      `  ${marks[result].padEnd(8)} ${name.padEnd(widest)}  ${first}`,
      ...rest.map((line) => `${indent}${line.trim()}`),
      ...(fix === undefined || result === 'ok' ? [] : [`${indent}→ ${fix}`]),
    ];
  });
  return `${lines.join('\n')}\n\n  ${summaryOf(checks)}`;
}

function summaryOf(checks: readonly DoctorCheck[]): string {
  const count = (result: DoctorCheck['result']) => checks.filter((check) => check.result === result).length;
  const [broken, doubtful] = [count('failed'), count('warning')];
  if (broken + doubtful === 0) return 'Everything is fine.';
  const words = [
    ...(broken > 0 ? [`${broken} failed`] : []),
    ...(doubtful > 0 ? [`${doubtful} ${doubtful === 1 ? 'warning' : 'warnings'}`] : []),
  ];
  return `${words.join(', ')}.`;
}
