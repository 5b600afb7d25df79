import { serveWriter } from '../../src/store/sqlite/writer-thread.ts';
import { laterProgram } from './later-version.ts';

serveWriter(laterProgram());
