import { Answers, type Call } from '@ambit/bus';
import { sessionService, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { DraftService } from './draft.service.js';
import { MessageService } from './message.service.js';
import { MoveService } from './move.service.js';
import { PrincipalService } from './principal.service.js';
import { RemovalService } from './removal.service.js';
import { SessionService } from './session.service.js';
import { TapeService } from './tape.service.js';
import { ToolLoadService } from './tool-load.service.js';

@Controller()
export class SessionHandlers {
  constructor(
    private readonly sessions: SessionService,
    private readonly principals: PrincipalService,
    private readonly messages: MessageService,
    private readonly tapes: TapeService,
    private readonly moves: MoveService,
    private readonly removals: RemovalService,
    private readonly drafts: DraftService,
    private readonly toolLoads: ToolLoadService,
  ) {}

  @Answers(sessionService.receiveMessage) receive(input: Parsed<typeof sessionService.receiveMessage>, call: Call) {
    return this.messages.receive(input, call);
  }
  @Answers(sessionService.createSession) create(input: Parsed<typeof sessionService.createSession>, call: Call) {
    return this.sessions.create(input, call);
  }
  @Answers(sessionService.getSession) get(input: Parsed<typeof sessionService.getSession>) {
    return this.sessions.get(input.id);
  }
  @Answers(sessionService.listSessions) list(input: Parsed<typeof sessionService.listSessions>) {
    return this.sessions.list(input);
  }
  @Answers(sessionService.deleteSession) delete(input: Parsed<typeof sessionService.deleteSession>, call: Call) {
    return this.removals.delete(input.id, call);
  }
  @Answers(sessionService.updateSession) update(input: Parsed<typeof sessionService.updateSession>, call: Call) {
    return this.sessions.update(input, call);
  }
  @Answers(sessionService.forkSession) fork(input: Parsed<typeof sessionService.forkSession>, call: Call) {
    return this.sessions.fork(input.id, call);
  }
  @Answers(sessionService.transferSession) transfer(input: Parsed<typeof sessionService.transferSession>, call: Call) {
    return this.moves.transfer(input, call);
  }
  @Answers(sessionService.clearSession) clear(input: Parsed<typeof sessionService.clearSession>, call: Call) {
    return this.moves.clear(input.id, call);
  }
  @Answers(sessionService.createDraft) draft(input: Parsed<typeof sessionService.createDraft>, call: Call) {
    return this.drafts.create(input, call);
  }
  @Answers(sessionService.loadTool) loadTool(input: Parsed<typeof sessionService.loadTool>, call: Call) {
    return this.toolLoads.load(input, call);
  }
  @Answers(sessionService.erasePrincipal) erase(input: Parsed<typeof sessionService.erasePrincipal>, call: Call) {
    return this.principals.erase(input, call);
  }
  @Answers(sessionService.listTape) tape(input: Parsed<typeof sessionService.listTape>) {
    return this.tapes.list(input);
  }
  @Answers(sessionService.searchTape) search(input: Parsed<typeof sessionService.searchTape>) {
    return this.tapes.search(input);
  }
  @Answers(sessionService.tapeContext) context(input: Parsed<typeof sessionService.tapeContext>) {
    return this.tapes.context(input);
  }
}
