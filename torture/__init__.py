"""A small sweep, disturbed at random for a stated time: is anything lost, wrong or made twice?"""
