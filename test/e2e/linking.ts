/** How people in the tests link their accounts in chat. */
import type { Person } from './person.ts';
import { until } from './until.ts';

/** Waits until the person has received a matching text, and returns it. */
export async function untilTold(person: Pick<Person, 'standing'>, pattern: RegExp): Promise<string> {
  const find = () => person.standing().find((text) => pattern.test(text));
  await until(() => find() !== undefined, { what: `a message like ${pattern}` });
  return find() ?? '';
}

/** `asker` asks for a code, `joiner` uses it and confirms: three events. */
export async function link(asker: Person, joiner: Person): Promise<void> {
  const seen = asker.standing().length;
  asker.says('/link');
  await until(() => asker.standing().length > seen, { what: 'the code' });
  const [, code] = /\/link ([A-Z2-9]{8})/.exec(asker.standing().at(-1) ?? '') ?? [];
  await redeem(joiner, code ?? '');
}

/** Sends the code in both steps: to redeem it and to confirm. */
export async function redeem(joiner: Person, code: string): Promise<void> {
  joiner.says(`/link ${code}`);
  await untilTold(joiner, new RegExp(`/link confirm ${code}$`));
  joiner.says(`/link confirm ${code}`);
  await untilTold(joiner, /is now linked with/);
}
