/** Times synchronous work on the event loop, so that whatever holds the loop can be named. */
export interface Sections {
  /** Runs the work immediately and passes on its result or error. `name`: a readable name for it. */
  run<T>(name: string, work: () => T): T;
}

/** Runs the work without timing it. */
export const noSections: Sections = { run: (_name, work) => work() };
