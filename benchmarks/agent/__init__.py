"""A small language model does tasks through tools: how often are tool and arguments right, and what does it cost?"""
