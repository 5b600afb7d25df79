import type { Store } from '../../src/store/base/command.ts';

type Answers = Readonly<Record<string, (input: never) => unknown>>;

/** Returns the store with its own answers to the queries and commands of these names. */
export function scriptedStore<Part extends Pick<Store, 'read' | 'write'>>(
  store: Part,
  answers: Answers,
): Part {
  const scripted = <Output>(name: string, input: unknown, otherwise: () => Promise<Output>) => {
    const answer = answers[name];
    return answer === undefined ? otherwise() : (Promise.resolve(answer(input as never)) as Promise<Output>);
  };
  return {
    ...store,
    read: (query, input) => scripted(query.query, input, () => store.read(query, input)),
    write: (command, input) => scripted(command.name, input, () => store.write(command, input)),
  };
}
