/** Entry point of SQLite's writer thread. */
import { storeProgram } from './steps.ts';
import { serveWriter } from './store/sqlite/writer-thread.ts';

serveWriter(storeProgram);
