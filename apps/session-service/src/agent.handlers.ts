import { Answers, type Call } from '@ambit/bus';
import { sessionService, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { AgentService } from './agent.service.js';
import { MessageService } from './message.service.js';

@Controller()
export class AgentHandlers {
  constructor(
    private readonly agents: AgentService,
    private readonly messages: MessageService,
  ) {}

  @Answers(sessionService.putProject) putProject(input: Parsed<typeof sessionService.putProject>, call: Call) {
    return this.agents.putProject(input, call);
  }
  @Answers(sessionService.listProjects) listProjects(input: Parsed<typeof sessionService.listProjects>) {
    return this.agents.listProjects(input);
  }
  @Answers(sessionService.putAgent) put(input: Parsed<typeof sessionService.putAgent>, call: Call) {
    return this.agents.put(input, call);
  }
  @Answers(sessionService.getAgent) get(input: Parsed<typeof sessionService.getAgent>) {
    return this.agents.get(input.id);
  }
  @Answers(sessionService.listAgents) list(input: Parsed<typeof sessionService.listAgents>) {
    return this.agents.list(input);
  }
  @Answers(sessionService.deleteAgent) delete(input: Parsed<typeof sessionService.deleteAgent>, call: Call) {
    return this.agents.delete(input.id, call);
  }
  @Answers(sessionService.adjustAgent) adjust(input: Parsed<typeof sessionService.adjustAgent>, call: Call) {
    return this.agents.adjust(input, call);
  }
  @Answers(sessionService.matchAgent) match(input: Parsed<typeof sessionService.matchAgent>) {
    return this.messages.match(input);
  }
}
