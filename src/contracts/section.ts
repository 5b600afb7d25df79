/** Times what runs in one piece on the event loop, so that whatever holds it can be named. */
export interface Sections {
  /** Runs the work at once and hands on what it returns or throws. `name`: what a person calls it. */
  run<T>(name: string, work: () => T): T;
}

/** Runs the work without timing it. */
export const noSections: Sections = { run: (_name, work) => work() };
